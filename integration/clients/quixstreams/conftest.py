"""Both brokers: kshim, then Apache Kafka."""

from integration.clients.confluent.conftest import broker, start  # noqa: F401
