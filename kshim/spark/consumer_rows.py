"""The layouts of the records of consumer groups (KIP-848), kinds 3 to 8 and 16, as column expressions.

They repeat those of `schemas.internal_topics.consumer_group_log`. Each kind has a column of its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kshim.spark.flexible import (
    BYTES,
    INT8,
    INT32,
    INT64,
    NULLABLE_TEXT,
    TAGS,
    TEXT,
    UUID,
    Reader,
    array,
    entity,
    int32s,
    nullable,
    tag_0,
)

EPOCH, TOPICS, MEMBER, TARGET_EPOCH = "epoch", "topics", "member", "target_epoch"
TARGET, CURRENT, REGEX = "target", "current", "regex"

UNREVOKED = 1
"""The state of a member that has not acknowledged a revocation."""


class Kind(NamedTuple):
    number: int
    """The kind in the key."""
    second: str
    """The key's column behind the group; "" if it has none."""
    value: Reader


_ASSIGNED = entity(("topic_id", UUID), ("partitions", int32s()), ("", TAGS))
_HELD = entity(
    ("topic_id", UUID), ("partitions", int32s()), ("assignment_epochs", tag_0(int32s(is_nullable=True)))
)
_CLASSIC = entity(
    ("session_timeout_ms", INT32),
    ("protocols", array(entity(("name", TEXT), ("metadata", BYTES), ("", TAGS)))),
    ("", TAGS),
)
_TOPIC = entity(
    ("topic_id", UUID),
    ("topic", TEXT),
    ("partitions", INT32),
    ("racks", array(entity(("partition", INT32), ("racks", array(TEXT)), ("", TAGS)))),
    ("", TAGS),
)

KINDS: Mapping[str, Kind] = {
    EPOCH: Kind(3, "", entity(("epoch", INT32), ("metadata_hash", tag_0(INT64)))),
    TOPICS: Kind(4, "", entity(("topics", array(_TOPIC)), ("", TAGS))),
    MEMBER: Kind(
        5,
        "member_id",
        entity(
            ("group_instance_id", NULLABLE_TEXT),
            ("rack_id", NULLABLE_TEXT),
            ("client_id", TEXT),
            ("client_host", TEXT),
            ("topic_names", array(TEXT)),
            ("topic_regex", NULLABLE_TEXT),
            ("rebalance_timeout_ms", INT32),
            ("server_assignor", NULLABLE_TEXT),
            ("classic", tag_0(nullable(_CLASSIC))),
        ),
    ),
    TARGET_EPOCH: Kind(6, "", entity(("epoch", INT32), ("time_ms", tag_0(INT64)))),
    TARGET: Kind(7, "member_id", entity(("assigned", array(_ASSIGNED)), ("", TAGS))),
    CURRENT: Kind(
        8,
        "member_id",
        entity(
            ("epoch", INT32),
            ("previous_epoch", INT32),
            ("state", INT8),
            ("assigned", array(_HELD)),
            ("revoking", array(_HELD)),
            ("", TAGS),
        ),
    ),
    REGEX: Kind(
        16, "expression", entity(("topics", array(TEXT)), ("version", INT64), ("time_ms", INT64), ("", TAGS))
    ),
}
"""By the name of the kind, which is also that of its column. The value of a missing tagged field is null."""
