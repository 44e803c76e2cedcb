"""The two coordinators as api functions see them; the type of a request decides the type of its response."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, overload

from kshim.callers import RequestContext
from kshim.cluster.pause import Pause
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, Patience
from kshim.coordination.groups.consumer.topic_names import UNPREPARED, ManyNames, Prepared
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, GroupRequest, StableOffsetFetch
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.waiting import WaitsFor
from kshim.coordination.transactions.requests import AddPartitions
from kshim.turns.promise import Answer
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
)
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.describe_groups import DescribedGroup
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from schemas.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from schemas.records.end_txn_marker import EndTxnMarker


class Groups(Protocol):
    """The group coordinator as the api functions see it.

    `submit` answers a request about one group: at once, or later if the request is parked or its records have
    to become durable first.
    """

    @overload
    def submit(self, context: RequestContext, request: JoinGroupRequest) -> Answer[JoinGroupResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: SyncGroupRequest) -> Answer[SyncGroupResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: HeartbeatRequest) -> Answer[HeartbeatResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: LeaveGroupRequest) -> Answer[LeaveGroupResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> Answer[OffsetCommitResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: TxnOffsetCommitRequest
    ) -> Answer[TxnOffsetCommitResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> Answer[OffsetDeleteResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetFetchRequestGroup | StableOffsetFetch
    ) -> Answer[OffsetFetchResponseGroup]: ...
    @overload
    def submit(self, context: RequestContext, request: DescribeGroup) -> Answer[DescribedGroup]: ...
    @overload
    def submit(self, context: RequestContext, request: DeleteGroup) -> Answer[DeletableGroupResult]: ...
    @overload
    def submit(
        self, context: RequestContext, request: ForceRebalance | ExpireMember | FenceMember
    ) -> Answer[ErrorCode]: ...

    @overload
    def submit(
        self, context: RequestContext, request: DescribeConsumerGroup
    ) -> Answer[DescribedConsumerGroup]: ...

    def heartbeat(self, context: RequestContext, request: HeartbeatRequest) -> Answer[HeartbeatResponse]:
        """Answer a Heartbeat. If the group is stable, the Heartbeat is parked until a rebalance begins, until
        another request follows on its connection, or until shortly before the member's next heartbeat.
        """
        ...

    def commit(self, context: RequestContext, request: OffsetCommitRequest) -> Answer[OffsetCommitResponse]:
        """Like `submit`, at less cost for a request that is not parked: commits are the most frequent
        requests that write records.
        """
        ...

    def member_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        visible: Visible,
        patience: Patience,
        prepared: Prepared = UNPREPARED,
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Answer the heartbeat of a member of a group of the consumer protocol. visible: returns those of
        some topics that the sender may see.
        """
        ...

    def large_subscriptions(self, group_id: str) -> list[bytes]:
        """The metadata to read aside before a consumer member joins a classic group; see `upgrade`."""
        ...

    def latest_large_set(self, group_id: str) -> ManyNames | None:
        """Of the sets of many topics that members of a consumer group name, the one that came last."""
        ...

    def list_groups(self, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """Answer ListGroups, which covers all shards of a broker."""
        ...

    def refusal(self, context: RequestContext, request: GroupRequest) -> ErrorCode:
        """The error that refuses a request before its group is asked, or NONE."""
        ...

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        ...

    def waits_for(self, group_id: str) -> WaitsFor | None:
        """The members that a group waits for, and why, for people to read; None if the group does not exist,
        or no broker of this process coordinates it.
        """
        ...

    def group_ids(self) -> list[str]:
        """All groups that any broker of this process coordinates, in no order."""
        ...

    def see(self, group_id: str) -> SeenGroup | None:
        """A group as people are shown it; None if it does not exist, or its coordinator is still loading."""
        ...

    async def write_marker(self, shard: int, marker: EndTxnMarker) -> ErrorCode:
        """End a transaction in `shard`; return NONE once the marker is durable and the committed offsets
        count.

        Return NOT_LEADER_OR_FOLLOWER if the shard is not led or is loading, with INVALID_PRODUCER_EPOCH
        if a later epoch of the producer is known, and with TRANSACTION_COORDINATOR_FENCED if a later epoch of
        the transaction coordinator is known.
        """
        ...

    async def topics_deleted(self, names: Collection[str], pause: Pause) -> None:
        """Delete the offsets committed for deleted topics: a new topic may get the same name. Return when
        all shards have been searched.

        pause: awaited before each step, with the microseconds that the step may cost, so that others get
        their turn.
        """
        ...


class TransactionPartitions(Protocol):
    """The part of a transaction coordinator that knows which partitions a transaction has."""

    async def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        """Add partitions to transactions, or verify that they are in them; see `Transactions`."""


class Transactions(Protocol):
    """The transaction coordinator as the api functions see it.

    `submit` answers a request about transactions: at once, or later, when the records are durable. To add
    partitions to a transaction, or to ask whether they are in it, submit an AddPartitionsToTxnRequest in the
    form of v4 and later, whatever the version in the context.
    """

    @overload
    async def submit(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> InitProducerIdResponse: ...
    @overload
    async def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse: ...
    @overload
    async def submit(self, context: RequestContext, request: AddPartitions) -> AddPartitionsToTxnResult: ...
    @overload
    async def submit(self, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse: ...
    @overload
    async def submit(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse: ...
    @overload
    async def submit(
        self, context: RequestContext, request: ListTransactionsRequest
    ) -> ListTransactionsResponse: ...
