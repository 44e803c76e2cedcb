"""What every api function works with: one broker, and the two coordinators as a request sees them.

An api function is called as `function(broker, context, request)`. The `Broker` is the same for all requests
to one node; the `RequestContext` is made anew for each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kshim.configs.endpoint import Endpoint
from kshim.requests.context import RequestContext

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kshim.cluster import Cluster
    from kshim.configs.config import Config
    from kshim.fetching.sessions import FetchSessions
    from kshim.producing.appends import ProducerAppends
    from kshim.storage.clock import Clock
    from kshim.storage.interfaces import Log
    from schemas.error_code import ErrorCode
    from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
    from schemas.records.end_txn_marker import EndTxnMarker


class Groups(Protocol):
    """The group coordinator as the api functions see it."""

    def submit(self, context: RequestContext, request: Any) -> Any | Deferred[Any]:
        """Answer a group request: the response, or a Deferred of it while it is parked or not durable."""
        ...

    def list_groups(self, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """Answer ListGroups, which asks all shards of a broker at once."""
        ...

    def refusal(self, context: RequestContext, request: Any) -> ErrorCode:
        """Why a request would be refused before its group is asked; NONE where it would not be."""
        ...

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        ...

    def write_marker(self, shard: int, marker: EndTxnMarker) -> Deferred[ErrorCode]:
        """End a transaction in `shard`; fires once that is durable and what it has committed counts.

        With NOT_LEADER_OR_FOLLOWER where the shard is not led or loading, INVALID_PRODUCER_EPOCH where the
        producer has a later epoch, TRANSACTION_COORDINATOR_FENCED where the transaction coordinator has.
        """
        ...

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget the offsets that were committed for topics that are gone."""
        ...


class Transactions(Protocol):
    """The transaction coordinator as the api functions see it."""

    def submit(self, context: RequestContext, request: Any) -> Any | Deferred[Any]:
        """Answer a request about transactions: the response, or a Deferred of it until it is durable.

        To let a transaction write to partitions, or to ask whether it may, submit an
        AddPartitionsToTxnRequest in the form of v4 and later, whatever the version in the context.
        """
        ...


@dataclass(frozen=True, slots=True)
class Broker:
    """What every api function works with: one broker, as it is made at start.

    The brokers of one process share everything but their node_id and their fetch sessions.
    """

    node_id: int
    config: Config
    cluster: Cluster
    log: Log
    groups: Groups
    transactions: Transactions
    clock: Clock
    producers: ProducerAppends
    fetch_sessions: FetchSessions

    def endpoint(self, context: RequestContext, node_id: int) -> Endpoint | None:
        """Where this client finds the broker `node_id`; None while it does not run."""
        return self.address(context, node_id) if node_id in self.cluster.running else None

    def address(self, context: RequestContext, node_id: int) -> Endpoint:
        """Where this client finds the broker `node_id` when it runs: brokers have consecutive ports."""
        found_us = context.advertised
        return Endpoint(found_us.host, found_us.port + node_id - self.node_id)

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""
        return int(self.clock.seconds() * 1000)
