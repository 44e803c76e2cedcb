"""The two coordinators as api functions see them: the type of the response follows from the request."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, overload

from twisted.internet.defer import Deferred

from kshim.cluster.cluster import Pause
from kshim.coordination.groups.refusals import (
    DeleteGroup,
    DescribeGroup,
    ExpireMember,
    FenceMember,
    ForceRebalance,
    GroupRequest,
    StableOffsetFetch,
)
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.waiting import WaitsFor
from kshim.coordination.transactions.requests import AddPartitions
from kshim.requests.context import RequestContext
from kshim.requests.later import Later, Promise
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
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

    `submit` answers a request about one group: at once, or later if it is parked or must become durable
    first.
    """

    @overload
    def submit(self, context: RequestContext, request: JoinGroupRequest) -> Later[JoinGroupResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: SyncGroupRequest) -> Later[SyncGroupResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: HeartbeatRequest) -> Later[HeartbeatResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: LeaveGroupRequest) -> Later[LeaveGroupResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> Later[OffsetCommitResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: TxnOffsetCommitRequest
    ) -> Later[TxnOffsetCommitResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> Later[OffsetDeleteResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: OffsetFetchRequestGroup | StableOffsetFetch
    ) -> Later[OffsetFetchResponseGroup]: ...
    @overload
    def submit(self, context: RequestContext, request: DescribeGroup) -> Later[DescribedGroup]: ...
    @overload
    def submit(self, context: RequestContext, request: DeleteGroup) -> Later[DeletableGroupResult]: ...
    @overload
    def submit(
        self, context: RequestContext, request: ForceRebalance | ExpireMember | FenceMember
    ) -> Later[ErrorCode]: ...

    def heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse | Promise[HeartbeatResponse]:
        """Answer a Heartbeat. In a stable group it is parked until a rebalance begins, until another request
        follows on its connection, or until the next heartbeat of the member is near.
        """
        ...

    def promise(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse | Promise[OffsetCommitResponse]:
        """The same as `submit` for the most frequent of the requests whose answer must become durable."""
        ...

    def list_groups(self, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """Answer ListGroups, which asks all shards of a broker at once."""
        ...

    def refusal(self, context: RequestContext, request: GroupRequest) -> ErrorCode:
        """The error that refuses a request before its group is asked, or NONE."""
        ...

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        ...

    def waits_for(self, group_id: str) -> WaitsFor | None:
        """What a group waits for, for people to read; None if there is no such group."""
        ...

    def group_ids(self) -> list[str]:
        """All groups that any broker of this process coordinates, in no order."""
        ...

    def see(self, group_id: str) -> SeenGroup | None:
        """A group as people are shown it; None if there is none, or its coordinator is still loading."""
        ...

    def write_marker(self, shard: int, marker: EndTxnMarker) -> Deferred[ErrorCode]:
        """End a transaction in `shard`; fires with NONE once that is durable and the committed offsets count.

        Fires with NOT_LEADER_OR_FOLLOWER if the shard is not led or is loading, INVALID_PRODUCER_EPOCH if the
        producer has a later epoch, TRANSACTION_COORDINATOR_FENCED if the transaction coordinator has.
        """
        ...

    def topics_deleted(self, names: Collection[str], pause: Pause) -> Deferred[None]:
        """Delete the offsets committed for deleted topics: a new topic may get the same name. Fires when all
        of them are looked for.

        pause: takes what a step may have cost, and lets others have their turn.
        """
        ...


class Transactions(Protocol):
    """The transaction coordinator as the api functions see it.

    `submit` answers a request about transactions: at once, or later, when the answer is durable. To let a
    transaction write to partitions, or to ask whether it may, submit an AddPartitionsToTxnRequest in the form
    of v4 and later, whatever the version in the context.
    """

    @overload
    def submit(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> Later[InitProducerIdResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> Later[AddPartitionsToTxnResponse]: ...
    @overload
    def submit(self, context: RequestContext, request: AddPartitions) -> Later[AddPartitionsToTxnResult]: ...
    @overload
    def submit(self, context: RequestContext, request: EndTxnRequest) -> Later[EndTxnResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> Later[DescribeTransactionsResponse]: ...
    @overload
    def submit(
        self, context: RequestContext, request: ListTransactionsRequest
    ) -> Later[ListTransactionsResponse]: ...
