"""The configuration of a group coordinator; the names are Kafka's property names with underscores."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member's first JoinGroup may stay parked before the member is removed; Kafka's constant."""


class MigrationPolicy(StrEnum):
    """Which groups with members are converted. Groups without members always are."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    """Classic groups are, when a member of the consumer protocol joins."""
    DOWNGRADE = "downgrade"
    """Consumer groups are, when only classic members remain."""
    DISABLED = "disabled"


class Settings(NamedTuple):
    """Limits and delays of the groups of one coordinator; defaults are Apache Kafka's."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    message_max_bytes: int = 1_048_588
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    is_consumer_interval_set: bool = False
    """True if group.consumer.heartbeat.interval.ms was set."""
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first one is used if no member asks for one."""
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_assignment_interval_ms: int = 0
