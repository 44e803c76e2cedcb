"""A client of any Kafka cluster, for the commands: it blocks, and has no part of this server."""
