"""Confluent's unmodified clients: the same tests try each of their calls on kshim and on Apache Kafka."""
