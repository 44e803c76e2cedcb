"""kshim: a Kafka-protocol server with its own group coordinator."""

__version__ = "0.1.0"
