"""The records of consumer groups (KIP-848), kinds 3 to 8 and 16, as column expressions: their keys, and what
this package needs of their values.

They repeat those of `schemas.internal_topics.consumer_group_log`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kshim.spark.flexible import (
    INT8,
    INT32,
    NULLABLE_TEXT,
    TAGS,
    TEXT,
    UUID,
    Reader,
    array,
    entity,
    int32s,
    skipped_texts,
)

EPOCH, TOPICS, MEMBER, TARGET_EPOCH = "epoch", "topics", "member", "target_epoch"
TARGET, CURRENT, REGEX = "target", "current", "regex"

UNREVOKED = 1
"""The state of a member that has not acknowledged a revocation."""


class Kind(NamedTuple):
    number: int
    """The kind in the key."""
    second: str = ""
    """The key's column behind the group; "" if it has none."""


KINDS: Mapping[str, Kind] = {
    EPOCH: Kind(3),
    TOPICS: Kind(4),
    MEMBER: Kind(5, "member_id"),
    TARGET_EPOCH: Kind(6),
    TARGET: Kind(7, "member_id"),
    CURRENT: Kind(8, "member_id"),
    REGEX: Kind(16, "expression"),
}

_HELD = entity(("topic_id", UUID), ("partitions", int32s()), ("", TAGS))

BEGINNINGS: Mapping[str, Reader] = {
    EPOCH: entity(("epoch", INT32)),
    MEMBER: entity(
        ("group_instance_id", NULLABLE_TEXT),
        ("", NULLABLE_TEXT),
        ("client_id", TEXT),
        ("client_host", TEXT),
        ("", skipped_texts()),
        ("", NULLABLE_TEXT),
        ("rebalance_timeout_ms", INT32),
    ),
    CURRENT: entity(
        ("epoch", INT32),
        ("previous_epoch", INT32),
        ("state", INT8),
        ("assigned", array(_HELD)),
        ("revoking", array(_HELD)),
    ),
}
"""By the name of the kind, which is also that of its column: the beginning of the value. What follows is not
read.
"""
