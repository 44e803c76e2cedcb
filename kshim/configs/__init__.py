"""What Apache Kafka 4.2 lets its users configure: names, types, defaults and legal values, as two tables."""
