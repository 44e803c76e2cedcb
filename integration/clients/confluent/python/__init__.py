"""confluent-kafka, any version from 2.2 on: every call of its clients."""
