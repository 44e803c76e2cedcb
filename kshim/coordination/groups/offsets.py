"""Committed offsets: OffsetCommit (8) writes them, OffsetFetch (9) reads them, OffsetDelete (47) and
DeleteGroups (42) delete them.

The api functions have checked before that the topics exist and that the caller may see them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.states import ANSWERS, State
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import NO_ID, OffsetCommitKey, OffsetCommitValue, TopicId
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

Committed = Mapping[Partition, OffsetCommitValue]

FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
NO_TIMESTAMP = -1
LONG_MAX = 2**63 - 1
_COMMITS = ANSWERS[ApiKey.OFFSET_COMMIT]


def no_id(_: str) -> TopicId:
    """The `topic_id_of` of coordinators that store offsets by topic name alone."""
    return NO_ID


def validate_commit(
    draft: Draft, group: ClassicGroup | None, caller: Caller, request: OffsetCommitRequest
) -> ErrorCode:
    """NONE if the sender may commit now, else the error. A commit in time also restarts the member's session.

    A generation below 0 comes from a consumer without group management or from an administrator; they may
    commit only while the group has no members. During the join phase the old generation is still accepted, so
    that a consumer can save its position before it joins again.
    """
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return ErrorCode.NONE
        known = caller.api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
        return ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION
    if group.state is State.EMPTY and generation < 0:
        return ErrorCode.NONE
    answer = _COMMITS[group.state]
    if group.state not in (State.EMPTY, State.DEAD):
        error = group.validate(request.member_id, request.group_instance_id)
        if error is ErrorCode.NONE and generation != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is not ErrorCode.NONE:
            return error
    if isinstance(answer, ErrorCode):
        return answer
    draft.restart_session(group.members[request.member_id])
    return ErrorCode.NONE


def commit(draft: Draft, caller: Caller, request: OffsetCommitRequest) -> None:
    """Write a record for every partition whose metadata is not too long; the answer has each one's error."""
    limit, group_id = draft.settings.offset_metadata_max_bytes, request.group_id
    topics = []
    for topic in request.topics:
        partitions = []
        topic_id = topic.topic_id if topic.topic_id.int else draft.topic_id_of(topic.name)
        for partition in topic.partitions:
            index, error = partition.partition_index, ErrorCode.NONE
            if too_long(partition.committed_metadata, limit):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                key = OffsetCommitKey(group=group_id, topic=topic.name, partition=index)
                draft.write(key, _value(draft.now_ms, request.retention_time_ms, topic_id, partition))
            partitions.append(_answer(index, error))
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
        )
    draft.reply(caller.token, OffsetCommitResponse(topics=tuple(topics)))


@lru_cache(4096)
def _answer(index: int, error: ErrorCode) -> OffsetCommitResponsePartition:
    """The answer for one partition. It is kept for later requests, because few different ones occur."""
    return OffsetCommitResponsePartition(partition_index=index, error_code=error)


def too_long(metadata: str | None, limit: int) -> bool:
    """True if `metadata` exceeds `offset.metadata.max.bytes`; like Kafka, this counts UTF-16 units."""
    if not metadata or len(metadata) * 2 <= limit:
        return False
    return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 > limit


def _value(
    now_ms: int,
    retention_ms: int,
    topic_id: TopicId,
    partition: OffsetCommitRequestPartition,
) -> OffsetCommitValue:
    """The value that is stored for a commit. topic_id: the id that the request names (v10 and later) or that
    `topic_id_of` returns, else NO_ID.
    """
    expires = retention_ms != NO_TIMESTAMP
    # A time beyond the greatest timestamp is cut to it: such an offset never expires.
    expire_timestamp = min(now_ms + retention_ms, LONG_MAX) if expires else NO_TIMESTAMP
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def fetch(
    committed: Committed,
    request: OffsetFetchRequestGroup,
    topic_id_of: Callable[[str], TopicId] = no_id,
    unstable: Collection[Partition] = (),
) -> OffsetFetchResponseGroup:
    """The offsets that a group has committed for the partitions of a request, or, with null topics, for all.

    A partition without a commit has offset -1 and no error, whether or not it exists; so has a partition
    whose offset was committed for a topic with another id. topic_id_of: returns the ids of topics that the
    request names without an id. unstable: partitions that are answered UNSTABLE_OFFSET_COMMIT, because an
    open transaction may still change their offset (KIP-447).
    """
    topics = []
    wanted = _all_topics(committed, topic_id_of) if request.topics is None else request.topics
    for topic in wanted:
        name = topic.name
        topic_id = topic.topic_id if topic.topic_id.int else topic_id_of(name)
        partitions = [
            _unstable(index)
            if unstable and (name, index) in unstable
            else _fetched(topic_id, index, committed.get((name, index)))
            for index in topic.partition_indexes
        ]
        topics.append(
            OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=tuple(partitions))
        )
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=tuple(topics))


def _all_topics(
    committed: Committed, topic_id_of: Callable[[str], TopicId]
) -> tuple[OffsetFetchRequestTopics, ...]:
    """All topics and partitions that have an offset. Offsets of a topic that was deleted and created again
    are left out.
    """
    indexes: dict[str, list[int]] = {}
    for name, index in committed:
        topic_id = topic_id_of(name)
        if not topic_id.int or not is_of_another_topic(committed[name, index], topic_id):
            indexes.setdefault(name, []).append(index)
    return tuple(
        OffsetFetchRequestTopics(name=name, partition_indexes=tuple(of_topic))
        for name, of_topic in indexes.items()
    )


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=-1,
        metadata="",
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )


def _fetched(topic_id: TopicId, index: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
    if value is None or is_of_another_topic(value, topic_id):
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="")
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def is_of_another_topic(value: OffsetCommitValue, topic_id: TopicId) -> bool:
    """True if both ids are known and differ: the topic was deleted and created again under its name."""
    return bool(value.topic_id.int and topic_id.int) and value.topic_id != topic_id


class Subscribed(Protocol):
    """A group of any kind whose offsets are to be deleted."""

    @property
    def group_id(self) -> str: ...

    def subscribed_topics(self) -> Container[str] | None:
        """The topics that its members consume; None stands for every topic."""


def validate_delete(group: Subscribed | None) -> ErrorCode:
    """NONE if single offsets of `group` may be deleted, else the error. A classic group with members must be
    of consumers: it is unknown which offsets other members use.
    """
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not isinstance(group, ClassicGroup):
        return ErrorCode.NONE
    if group.state is State.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def delete(
    draft: Draft,
    group: Subscribed,
    known: Collection[Partition],
    caller: Caller,
    request: OffsetDeleteRequest,
) -> None:
    """Write a tombstone for each offset that the request names and that is in `known`. Topics that the group
    subscribes to are answered GROUP_SUBSCRIBED_TO_TOPIC.
    """
    subscribed = group.subscribed_topics()
    topics = []
    for topic in request.topics:
        error = ErrorCode.NONE
        if subscribed is None or topic.name in subscribed:
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            _delete_partitions(draft, group.group_id, known, topic)
        partitions = tuple(
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        )
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    draft.reply(caller.token, OffsetDeleteResponse(topics=tuple(topics)))


def _delete_partitions(
    draft: Draft, group_id: str, known: Collection[Partition], topic: OffsetDeleteRequestTopic
) -> None:
    for index in dict.fromkeys(partition.partition_index for partition in topic.partitions):
        if (topic.name, index) in known:
            draft.forget_offset(group_id, topic.name, index)


def delete_group(draft: Draft, group: ClassicGroup, known: Collection[Partition]) -> None:
    """Write a tombstone for every offset in `known`, then one for the group itself."""
    for topic, index in known:
        draft.forget_offset(group.group_id, topic, index)
    draft.forget_group(group)


def delete_topics(
    draft: Draft,
    group_id: str,
    known: Collection[Partition],
    topics: Mapping[str, TopicId],
    values: Callable[[str, Partition], Iterable[OffsetCommitValue]],
) -> None:
    """Write a tombstone for every offset that a group has committed for one of `topics`.

    topics: the ids of the topics by their names; NO_ID stands for any id. An offset with another id stays: it
    belongs to a newer topic of the same name. values: returns the offsets of a partition.
    """
    for topic, index in known:
        topic_id = topics.get(topic)
        if topic_id is None:
            continue
        of_others = (is_of_another_topic(each, topic_id) for each in values(group_id, (topic, index)))
        if not topic_id.int or not any(of_others):
            draft.forget_offset(group_id, topic, index)
