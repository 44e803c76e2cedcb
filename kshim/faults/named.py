"""Finds the groups, topics and members that a request names, by the definitions of the messages.

A topic may be named by its id. A Fetch is also about the topics of its session, which only the broker knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Final

from schemas.api_key import ApiKey
from schemas.message import definition
from schemas.registry import MESSAGES

Path = tuple[str, ...]
"""The names of nested fields, from the request inwards. Any of them may be an array."""


class Kind(Enum):
    """The kinds of names that a fault may be limited to. The value is the key in a fault's JSON."""

    GROUP = "group"
    TOPIC = "topic"
    MEMBER = "member"


_FIELDS: Final = {
    Kind.GROUP: {"group_id", "groups_names"},
    Kind.TOPIC: {"topic", "topic_name", "topic_names", "topic_id"},
    Kind.MEMBER: {"member_id"},
}
_IN_TOPICS: Final = "name"
"""A field that names a topic if it is in an array of topics."""
_OF_OTHERS: Final = frozenset(("forgotten_topics_data", "assignments", "topology"))
"""Fields that are not what a request is about: topics that a Fetch forgets, members that get assignments from
the leader, internal topics of Kafka Streams.
"""
_ELSEWHERE: Final[dict[tuple[ApiKey, Kind], tuple[Path, ...]]] = {
    (ApiKey.DESCRIBE_GROUPS, Kind.GROUP): (("groups",),),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, Kind.GROUP): (("group_ids",),),
    (ApiKey.FIND_COORDINATOR, Kind.GROUP): (("key",), ("coordinator_keys",)),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, Kind.TOPIC): (("subscribed_topic_names",),),
    (ApiKey.SHARE_GROUP_HEARTBEAT, Kind.TOPIC): (("subscribed_topic_names",),),
}
_GROUP_KEY: Final = 0
"""The key type with which FindCoordinator names a group."""


@cache
def names(api_key: ApiKey, kind: Kind) -> tuple[Path, ...]:
    """The fields in which requests of an API name a group, topic or member; empty if they name none."""
    found = tuple(_found(MESSAGES[api_key][0], kind, ()))
    return found + _ELSEWHERE.get((api_key, kind), ())


def named(api_key: ApiKey, kind: Kind, request: object) -> Iterator[object]:
    """The names in a request. Topics that are named by id come as UUIDs."""
    if api_key is ApiKey.FIND_COORDINATOR and getattr(request, "key_type", None) != _GROUP_KEY:
        return
    for path in names(api_key, kind):
        yield from _values(request, path)


def _found(cls: type[object], kind: Kind, above: Path) -> Iterator[Path]:
    for field in definition(cls).fields:
        path = (*above, field.name)
        in_topics = field.name == _IN_TOPICS and bool(above) and "topic" in above[-1]
        if field.name in _FIELDS[kind] or (kind is Kind.TOPIC and in_topics):
            yield path
        entity = getattr(field.type, "element", field.type)
        if isinstance(entity, type) and field.name not in _OF_OTHERS:
            yield from _found(entity, kind, path)


def _values(value: object, path: Path) -> Iterator[object]:
    if isinstance(value, tuple):
        for each in value:
            yield from _values(each, path)
    elif value is not None and path:
        yield from _values(getattr(value, path[0]), path[1:])
    elif value is not None:
        yield value
