"""The configs in force of each broker, log and group. A log's configs are its topic's, else its broker's; a
group's are its own, else its broker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kshim.cluster.broker_configs import BrokerConfigs, broker_configs
from kshim.cluster.group_configs import GroupValues, group_values
from kshim.cluster.topic_configs import LogConfig, log_config
from kshim.cluster.topics import NO_LEADER, Topic

if TYPE_CHECKING:
    from kshim.configs.config import Config


class CurrentConfigs:
    """Makes configs at their first use, and caches them until they change."""

    def __init__(self, config: Config, node_ids: tuple[int, ...]) -> None:
        self._config = config
        self._node_ids = node_ids
        self.dynamic: dict[str, dict[str, str]] = {}
        """The texts set at run time, by node id as text, "" for all brokers. Exactly the durable ones."""
        self._of_brokers: dict[int, BrokerConfigs] = {}
        self.groups: dict[str, dict[str, str]] = {}
        """The texts set for groups, by group id. Exactly the durable ones."""
        self._of_groups: dict[tuple[str, int], GroupValues] = {}
        self._of_other_groups: dict[int, GroupValues] = {}
        """The values of all groups without configs of their own, by broker."""
        # The key has the topic's name, whose hash Python caches; a value counts for that Topic object alone.
        self._of_logs: dict[tuple[str, int], tuple[Topic, LogConfig]] = {}

    def of_broker(self, node_id: int) -> BrokerConfigs:
        """The current configs of broker `node_id`."""
        known = self._of_brokers.get(node_id)
        if known is None:
            known = self._of_brokers[node_id] = broker_configs(self._config, node_id, self.dynamic)
        return known

    def of_group(self, group_id: str, node_id: int) -> GroupValues:
        """The values of a group's configs: its own, else those of broker `node_id`, its coordinator."""
        texts = self.groups.get(group_id)
        if texts is None:
            known = self._of_other_groups.get(node_id)
            if known is None:
                known = self._of_other_groups[node_id] = group_values({}, self.of_broker(node_id))
            return known
        known = self._of_groups.get((group_id, node_id))
        if known is None:
            known = self._of_groups[group_id, node_id] = group_values(texts, self.of_broker(node_id))
        return known

    def of_log(self, topic: Topic, node_id: int | None = None) -> LogConfig:
        """The log config of `topic`: its overrides, else the configs of broker `node_id`, which leads it.

        node_id: None or NO_LEADER takes the first broker.
        """
        node_id = self._node_ids[0] if node_id is None or node_id == NO_LEADER else node_id
        known = self._of_logs.get((topic.name, node_id))
        if known is None or known[0] is not topic:
            known = topic, log_config(topic.configs, self.of_broker(node_id))
            self._of_logs[topic.name, node_id] = known
        return known[1]

    def forget_logs_of(self, topic: Topic) -> None:
        """Drop the cached log configs of a topic that was changed or deleted."""
        for node_id in self._node_ids:
            self._of_logs.pop((topic.name, node_id), None)

    def alter(self, brokers: Mapping[str, dict[str, str]]) -> None:
        """Put new dynamic configs into force. brokers: all texts of each changed broker, by its key."""
        self.dynamic |= brokers
        self._of_brokers.clear()
        self._of_logs.clear()
        self._of_groups.clear()
        self._of_other_groups.clear()

    def alter_groups(self, groups: Mapping[str, dict[str, str]]) -> None:
        """Put new configs of groups into force. groups: all texts of each changed group, by its id."""
        for group_id, texts in groups.items():
            for node_id in self._node_ids:
                self._of_groups.pop((group_id, node_id), None)
            if texts:
                self.groups[group_id] = texts
            else:
                self.groups.pop(group_id, None)
