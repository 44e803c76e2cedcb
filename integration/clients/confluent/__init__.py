"""Confluent's unmodified clients: every call they have, on kshim and on Apache Kafka, by the same tests."""
