"""The everyday commands by address, each against kshim and against Apache Kafka."""
