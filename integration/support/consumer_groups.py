"""Groups of the consumer protocol, as confluent-kafka's admin client describes them."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient


def described(bootstrap: str, group_id: str) -> dict[str, set[int]]:
    """Each member's partitions, by client id; empty unless the group is stable."""
    asking = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        group = asking.describe_consumer_groups([group_id], request_timeout=10)[group_id].result()
    except KafkaException:  # no server answers just now
        return {}
    if group.state != ConsumerGroupState.STABLE:
        return {}
    return {m.client_id: {each.partition for each in m.assignment.topic_partitions} for m in group.members}
