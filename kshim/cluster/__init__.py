"""Brokers, topics and partitions. Metadata is answered from them, and only this package changes them."""

from kshim.cluster.checks import NewTopic, Refusal
from kshim.cluster.cluster import Cluster
from kshim.cluster.known import KnownCluster
from kshim.cluster.names import GROUP_METADATA_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC, fault_in_name
from kshim.cluster.topics import NO_LEADER, ZERO_UUID, Partition, Topic, uuid_text

__all__ = [
    "GROUP_METADATA_TOPIC",
    "INTERNAL_TOPICS",
    "NO_LEADER",
    "TRANSACTION_STATE_TOPIC",
    "ZERO_UUID",
    "Cluster",
    "KnownCluster",
    "NewTopic",
    "Partition",
    "Refusal",
    "Topic",
    "fault_in_name",
    "uuid_text",
]
