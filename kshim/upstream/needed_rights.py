"""`NEEDED`: the rights that each request which kshim answers needs, as far as the request itself names them.

The rules of `kshim.access` decide what follows from a right that a client has not. This table only says which
rights have to be known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kshim.cluster.acl import AclOperation, AclResource
from kshim.upstream.mirror import Mirror
from kshim.upstream.rights import ASKED, EVERY_TOPIC, Right
from schemas.api_key import ApiKey

READ, WRITE, DELETE, DESCRIBE = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
)
TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP

Needs = Callable[[Any, Mirror], Iterable[Right]]
"""Returns the rights, given the request and the topics that kshim knows."""


def _member(request: Any, _: Mirror) -> Iterator[Right]:
    yield Right(READ, GROUP, request.group_id)


def _commit(request: Any, cluster: Mirror) -> Iterator[Right]:
    yield Right(READ, GROUP, request.group_id)
    yield from _topics(READ, request.topics, cluster)


def _commit_in_transaction(request: Any, cluster: Mirror) -> Iterator[Right]:
    yield Right(WRITE, AclResource.TRANSACTIONAL_ID, request.transactional_id)
    yield from _commit(request, cluster)


def _fetch(request: Any, cluster: Mirror) -> Iterator[Right]:
    for group in request.groups or (request,):
        yield Right(DESCRIBE, GROUP, group.group_id)
        yield from _topics(DESCRIBE, group.topics or (), cluster)


def _delete_offsets(request: Any, cluster: Mirror) -> Iterator[Right]:
    yield Right(DELETE, GROUP, request.group_id)
    yield from _topics(READ, request.topics, cluster)


def _delete_groups(request: Any, _: Mirror) -> Iterator[Right]:
    return (Right(DELETE, GROUP, each) for each in request.groups_names)


def _describe(request: Any, _: Mirror) -> Iterator[Right]:
    return _described(request.groups, request)


def _describe_consumer(request: Any, _: Mirror) -> Iterator[Right]:
    return _described(request.group_ids, request)


def _described(group_ids: Iterable[str], request: Any) -> Iterator[Right]:
    operations = ASKED[GROUP] if request.include_authorized_operations else (DESCRIBE,)
    return (Right(operation, GROUP, each) for each in group_ids for operation in operations)


def _consumer_heartbeat(request: Any, _: Mirror) -> Iterator[Right]:
    yield Right(READ, GROUP, request.group_id)
    for name in request.subscribed_topic_names or ():
        yield Right(DESCRIBE, TOPIC, name)
    if request.subscribed_topic_regex:
        yield EVERY_TOPIC


def _topics(operation: AclOperation, topics: Iterable[Any], cluster: Mirror) -> Iterator[Right]:
    """The rights to topics, which have names or ids. A topic whose id is not known needs none."""
    for topic in topics:
        topic_id = getattr(topic, "topic_id", None)
        known = None if topic.name or topic_id is None else cluster.topic_by_id(topic_id)
        name = topic.name or (known and known.name)
        if name:
            yield Right(operation, TOPIC, name)


NEEDED: Final[Mapping[int, Needs]] = {
    ApiKey.JOIN_GROUP: _member,
    ApiKey.SYNC_GROUP: _member,
    ApiKey.HEARTBEAT: _member,
    ApiKey.LEAVE_GROUP: _member,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.TXN_OFFSET_COMMIT: _commit_in_transaction,
    ApiKey.OFFSET_FETCH: _fetch,
    ApiKey.OFFSET_DELETE: _delete_offsets,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.DESCRIBE_GROUPS: _describe,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _describe_consumer,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_heartbeat,
}
NAMES_MORE: Final = frozenset((ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE))
"""APIs that change nothing, and whose answers name topics that the request did not."""
MAY_PARK: Final = frozenset(
    (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT)
)
"""APIs whose answers may wait until another request follows."""
