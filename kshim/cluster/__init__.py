"""Brokers, topics and partitions: what Metadata answers from, and the one place that changes them."""

from kshim.cluster.checks import NewTopic, Refused
from kshim.cluster.cluster import Cluster
from kshim.cluster.names import GROUP_METADATA_TOPIC
from kshim.cluster.topics import ZERO_UUID, Partition, Topic, uuid_text

__all__ = ["GROUP_METADATA_TOPIC", "ZERO_UUID", "Cluster", "NewTopic", "Partition", "Refused", "Topic", "uuid_text"]
