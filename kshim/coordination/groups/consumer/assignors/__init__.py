"""Server-side assignors: who is to consume which partition. The results are Kafka's, partition for partition.

Kafka's assignors go through hash maps; `kshim.coordination.java` gives the order in which Java does that.
Where Java's order depends on how a map was filled, the order here depends on the ids alone.
"""
