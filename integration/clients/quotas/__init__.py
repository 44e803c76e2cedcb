"""The speed of unmodified clients with a quota, on kshim and on Apache Kafka.

A paced client is one program: it sends or reads records of two thousand bytes, as fast as it can, and prints
how many bytes that were, every tenth of a second. In its first seconds it keeps to the pace that it is given:
else it would at once use up what the quota allows for all of its window, and would then hardly be served
before that is forgotten.
"""
