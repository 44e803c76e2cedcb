"""The configuration: kshim's properties, tables of Apache Kafka 4.4's broker and topic configs, parsers."""
