"""Names what an older upstream lacks, by the versions of requests that it serves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from schemas.api_key import ApiKey


class Part(NamedTuple):
    """A part of Kafka on which something depends that kshim's clients may use."""

    what: str
    since: str
    """The release of Apache Kafka that has it."""
    api_key: ApiKey
    version: int
    """The version of this API that shows that a broker has it."""
    without: str
    """What is different without it."""


OLDEST: Final = Part(
    *("topic ids", "2.8", ApiKey.METADATA, 10),
    "kshim does not start",
)
BY_ID: Final = Part(
    *("requests for topics by id", "3.1", ApiKey.METADATA, 12),
    "groups of the consumer protocol are not served: librdkafka's members (2.16) crash if they cannot ask",
)
PARTS: Final[Sequence[Part]] = (
    Part(
        *("descriptions of transactions", "3.0", ApiKey.DESCRIBE_TRANSACTIONS, 0),
        "kshim adds a group to a transaction where it would look if the client has added it",
    ),
    BY_ID,
    Part(
        *("configs of groups", "4.0", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1),
        "the `group.consumer.*` properties of kshim count for all groups",
    ),
    Part(
        *("groups of the consumer protocol", "4.0", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1),
        "kshim serves them all the same; with `upstream.groups.protocols=classic` nobody does",
    ),
    Part(
        *("commits by topic id", "4.1", ApiKey.OFFSET_COMMIT, 10),
        "an offset copied to the upstream may count for a topic that was made again at that moment",
    ),
    Part(
        *("share groups", "4.2", ApiKey.SHARE_GROUP_HEARTBEAT, 1),
        "clients are told that the broker does not know the request",
    ),
    Part(
        *("streams groups", "4.2", ApiKey.STREAMS_GROUP_HEARTBEAT, 0),
        "clients are told that the broker does not know the request",
    ),
)
"""In the order of the releases."""


def lacks(versions: Mapping[int, range], part: Part) -> bool:
    """True if a broker that serves these versions lacks a part of Kafka."""
    return part.version not in versions.get(part.api_key, range(0))


def missing(versions: Mapping[int, range]) -> str:
    """Name what a broker lacks that serves these versions; empty if it lacks nothing."""
    return ", ".join(f"{each.what} (Kafka {each.since})" for each in PARTS if lacks(versions, each))
