"""The answers that refuse requests before a group is asked: wrong coordinator, still loading, bad group id.

Each API puts the error into another field. While a shard is loading, Heartbeat is answered NONE and SyncGroup
REBALANCE_IN_PROGRESS, because clients give up on COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.describe_groups import DescribedGroup
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from schemas.records.end_txn_marker import EndTxnMarker

FIRST_TXN_VERSION_THAT_KNOWS_LOADING = 2


class DescribeGroup(NamedTuple):
    """One group of a DescribeGroups request, which may name groups of many shards."""

    group_id: str


class DeleteGroup(NamedTuple):
    """One group of a DeleteGroups request."""

    group_id: str


class WaitingHeartbeat(NamedTuple):
    """A Heartbeat whose sender can wait for the answer."""

    request: HeartbeatRequest

    @property
    def group_id(self) -> str:
        return self.request.group_id


class StableOffsetFetch(NamedTuple):
    """One group of an OffsetFetch request that wants stable offsets only."""

    request: OffsetFetchRequestGroup

    @property
    def group_id(self) -> str:
        return self.request.group_id


class EndTransaction(NamedTuple):
    """The end of a transaction in a shard of __consumer_offsets; the reply is an error code."""

    shard: int
    marker: EndTxnMarker


GroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | WaitingHeartbeat
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequestGroup
    | StableOffsetFetch
    | TxnOffsetCommitRequest
    | OffsetDeleteRequest
    | DescribeGroup
    | DeleteGroup
    | ForceRebalance
    | ExpireMember
    | FenceMember
    | MemberHeartbeat
    | DescribeConsumerGroup
)
"""The requests about one group that a shard answers; each has a `group_id`."""


def refuse(request: GroupRequest | EndTransaction, caller: Caller, error: ErrorCode) -> object:
    """The response to `request` that carries `error`."""
    return _REFUSALS[type(request)](request, caller, error)


def as_kept(request: GroupRequest | EndTransaction) -> object:
    """The request, or a copy without its large content that `refuse` can still answer: some requests are
    parked for long.
    """
    without_content = _WITHOUT_CONTENT.get(type(request))
    return request if without_content is None else without_content(request)


def _join_group(request: JoinGroupRequest, caller: Caller, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=request.member_id)


def _sync_group(request: SyncGroupRequest, caller: Caller, error: ErrorCode) -> SyncGroupResponse:
    loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if loading else error)


def _heartbeat(request: HeartbeatRequest, caller: Caller, error: ErrorCode) -> HeartbeatResponse:
    loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error)


def _leave_group(request: LeaveGroupRequest, caller: Caller, error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def _offset_commit(request: OffsetCommitRequest, caller: Caller, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _offset_fetch(
    request: OffsetFetchRequestGroup | StableOffsetFetch, caller: Caller, error: ErrorCode
) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=request.group_id, error_code=error)


def _txn_offset_commit(
    request: TxnOffsetCommitRequest, caller: Caller, error: ErrorCode
) -> TxnOffsetCommitResponse:
    """Below v2, loading is answered COORDINATOR_NOT_AVAILABLE: old producers may fail on the code for loading
    (KAFKA-7296).
    """
    loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if loading and caller.api_version < FIRST_TXN_VERSION_THAT_KNOWS_LOADING:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _end_transaction(request: EndTransaction, caller: Caller, error: ErrorCode) -> ErrorCode:
    """Replace errors of group coordinators by one that a transaction coordinator expects, so that it tries
    again.
    """
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_HERE else error


def _offset_delete(request: OffsetDeleteRequest, caller: Caller, error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _describe_group(request: DescribeGroup, caller: Caller, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=request.group_id, error_code=error)


def _member_heartbeat(
    request: MemberHeartbeat, caller: Caller, error: ErrorCode
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


def _describe_consumer_group(
    request: DescribeConsumerGroup, caller: Caller, error: ErrorCode
) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=request.group_id, error_code=error)


def _delete_group(request: DeleteGroup, caller: Caller, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=request.group_id, error_code=error)


def _steered(
    request: ForceRebalance | ExpireMember | FenceMember, caller: Caller, error: ErrorCode
) -> ErrorCode:
    return error


_NOT_HERE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_WITHOUT_CONTENT: dict[type, Callable[[Any], object]] = {
    JoinGroupRequest: lambda it: JoinGroupRequest(group_id=it.group_id, member_id=it.member_id),
    SyncGroupRequest: lambda it: SyncGroupRequest(group_id=it.group_id, member_id=it.member_id),
}
_REFUSALS: dict[type, Callable[[Any, Caller, ErrorCode], object]] = {
    JoinGroupRequest: _join_group,
    SyncGroupRequest: _sync_group,
    HeartbeatRequest: _heartbeat,
    WaitingHeartbeat: _heartbeat,
    LeaveGroupRequest: _leave_group,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequestGroup: _offset_fetch,
    StableOffsetFetch: _offset_fetch,
    TxnOffsetCommitRequest: _txn_offset_commit,
    EndTransaction: _end_transaction,
    OffsetDeleteRequest: _offset_delete,
    DescribeGroup: _describe_group,
    DeleteGroup: _delete_group,
    MemberHeartbeat: _member_heartbeat,
    DescribeConsumerGroup: _describe_consumer_group,
    ForceRebalance: _steered,
    ExpireMember: _steered,
    FenceMember: _steered,
}
