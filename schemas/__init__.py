"""Reads and writes the bytes of the Kafka protocol: its messages in all versions, and its records."""
