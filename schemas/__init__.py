"""What the bytes of the Kafka protocol mean: its messages, its records, and which versions exist."""
