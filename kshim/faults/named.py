"""The groups, topics and members that a request names, found in the definitions of the messages.

A topic may be named by its id. A Fetch names the topics of its session, too, which only the broker knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, Final

from schemas.api_key import ApiKey
from schemas.message import definition
from schemas.registry import MESSAGES

Path = tuple[str, ...]
"""The names of fields, from a request inwards; each may hold an array."""


class Kind(Enum):
    """What a fault may be limited to; the value is its name in a fault."""

    GROUP = "group"
    TOPIC = "topic"
    MEMBER = "member"


_FIELDS: Final = {
    Kind.GROUP: {"group_id", "groups_names"},
    Kind.TOPIC: {"topic", "topic_name", "topic_names", "topic_id"},
    Kind.MEMBER: {"member_id"},
}
_IN_TOPICS: Final = "name"
"""A topic, where its array is one of topics."""
_OF_OTHERS: Final = frozenset(("forgotten_topics_data", "assignments", "topology"))
"""What a Fetch no longer wants, whom a group's leader writes to, what Kafka Streams makes for itself."""
_ELSEWHERE: Final[dict[tuple[ApiKey, Kind], tuple[Path, ...]]] = {
    (ApiKey.DESCRIBE_GROUPS, Kind.GROUP): (("groups",),),
    (ApiKey.FIND_COORDINATOR, Kind.GROUP): (("key",), ("coordinator_keys",)),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, Kind.TOPIC): (("subscribed_topic_names",),),
    (ApiKey.SHARE_GROUP_HEARTBEAT, Kind.TOPIC): (("subscribed_topic_names",),),
}
_GROUP_KEY: Final = 0
"""The key type of a group's coordinator."""


@cache
def names(api_key: ApiKey, kind: Kind) -> tuple[Path, ...]:
    """Where requests of an API name a group, a topic or a member; empty if they name none."""
    found = tuple(_found(MESSAGES[api_key][0], kind, ()))
    return found + _ELSEWHERE.get((api_key, kind), ())


def named(api_key: ApiKey, kind: Kind, request: Any) -> Iterator[Any]:
    """The names in a request; the ids of topics are UUIDs."""
    if api_key is ApiKey.FIND_COORDINATOR and request.key_type != _GROUP_KEY:
        return
    for path in names(api_key, kind):
        yield from _values(request, path)


def _found(cls: Any, kind: Kind, above: Path) -> Iterator[Path]:
    for field in definition(cls).fields:
        path = (*above, field.name)
        in_topics = field.name == _IN_TOPICS and bool(above) and "topic" in above[-1]
        if field.name in _FIELDS[kind] or (kind is Kind.TOPIC and in_topics):
            yield path
        entity = getattr(field.type, "element", field.type)
        if isinstance(entity, type) and field.name not in _OF_OTHERS:
            yield from _found(entity, kind, path)


def _values(value: Any, path: Path) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _values(each, path)
    elif value is not None and path:
        yield from _values(getattr(value, path[0]), path[1:])
    elif value is not None:
        yield value
