"""TxnOffsetCommit (28): commits offsets together with the records of a producer's transaction, or not at all.

The offsets are pending until the transaction ends (`pending_offsets`). The api function has checked before
that the transaction is under way and that the topics exist.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.offsets import NO_TIMESTAMP, too_long
from kshim.coordination.groups.states import ANSWERS, State
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitKey, OffsetCommitValue, TopicId
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_THAT_KNOWS_GROUPS = 6


def validate_commit(
    group: ClassicGroup | None, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    """NONE if offsets of the group may be committed, else the error.

    A producer need not name the member for which it commits; below v3 it cannot (KIP-447). A member that is
    named must be of the present generation, in any of its phases.
    """
    if group is None:
        if request.generation_id_or_member_epoch < 0:
            return ErrorCode.NONE
        knows_groups = api_version >= FIRST_VERSION_THAT_KNOWS_GROUPS
        return ErrorCode.GROUP_ID_NOT_FOUND if knows_groups else ErrorCode.ILLEGAL_GENERATION
    if group.state is State.EMPTY and request.generation_id_or_member_epoch < 0:
        return ErrorCode.NONE
    answer = ANSWERS[ApiKey.TXN_OFFSET_COMMIT][group.state]
    if isinstance(answer, ErrorCode):
        return answer
    says_who = (
        request.generation_id_or_member_epoch >= 0
        or request.member_id
        or request.group_instance_id is not None
    )
    if not says_who:
        return ErrorCode.NONE
    error = group.validate(request.member_id, request.group_instance_id)
    if error is ErrorCode.NONE and request.generation_id_or_member_epoch != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def commit(draft: Draft, caller: Caller, request: TxnOffsetCommitRequest) -> None:
    """Write a record for every partition whose metadata is not too long; the answer has each one's error."""
    draft.producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    topics = []
    for topic in request.topics:
        partitions = []
        topic_id = draft.topic_id_of(topic.name)
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if too_long(partition.committed_metadata, draft.settings.offset_metadata_max_bytes):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                index = partition.partition_index
                key = OffsetCommitKey(group=request.group_id, topic=topic.name, partition=index)
                draft.write(key, _value(draft.now_ms, topic_id, partition))
            partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
        topics.append(
            TxnOffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
            )
        )
    draft.reply(caller.token, TxnOffsetCommitResponse(topics=tuple(topics)))


def _value(now_ms: int, topic_id: TopicId, partition: TxnOffsetCommitRequestPartition) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=NO_TIMESTAMP,
        topic_id=topic_id,
    )
