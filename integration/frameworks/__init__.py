"""Kafka's own frameworks, Kafka Streams and Kafka Connect, unmodified, against kshim and Apache Kafka."""
