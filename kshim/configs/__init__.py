"""The configuration: kshim's properties, tables of Apache Kafka 4.2's broker and topic configs, parsers."""
