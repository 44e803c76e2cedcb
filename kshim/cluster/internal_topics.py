"""The settings of topics that are created at their first use; __transaction_state has special ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.cluster.checks import NewTopic
from kshim.cluster.names import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from kshim.configs.config import Config


def auto_created(name: str, config: Config, brokers: int) -> NewTopic:
    """The topic `name` as it is created at its first use. brokers: how many there are."""
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            min(config.transaction_state_log_replication_factor, brokers),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, brokers)),
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(name)
