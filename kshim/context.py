"""What one request knows of its caller, and of the broker that serves it.

Every api function is called as `function(broker, context, request)`: the `Broker` is the same for all of
them, the `RequestContext` is made anew for each request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kshim.addresses import Endpoint
from kshim.fetch_sessions import FetchSessions

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kshim.cluster import Cluster
    from kshim.config import Config
    from kshim.producer_appends import ProducerAppends
    from kshim.storage.interfaces import Log
    from schemas.end_txn_marker import EndTxnMarker
    from schemas.error_code import ErrorCode
    from schemas.list_groups import ListGroupsRequest, ListGroupsResponse


@dataclass(frozen=True, slots=True)
class Caller:
    """The other end of a connection.

    host: as Java prints an address, "/127.0.0.1". address: the address and port it called from, for the log.
    advertised: where it should connect.
    """

    host: str
    address: Endpoint
    advertised: Endpoint


class Signal:
    """Something that happens once. Who watches after it has fired is called at once."""

    __slots__ = ("_watchers", "fired")

    def __init__(self) -> None:
        self.fired = False
        self._watchers: list[Callable[[], object]] | None = None

    def watch(self, callback: Callable[[], object]) -> None:
        if self.fired:
            callback()
        elif self._watchers is None:
            self._watchers = [callback]
        else:
            self._watchers.append(callback)

    def fire(self) -> None:
        if self.fired:
            return
        self.fired = True
        watchers, self._watchers = self._watchers, None
        for callback in watchers or ():
            callback()


@dataclass(slots=True)
class RequestContext:
    """One request's caller.

    client_id: "" where the client sent null. client_host: as Java prints an address, "/127.0.0.1".
    advertised: where this client should connect: the advertised listener, else the address at which its
    connection arrived. hurry: fires when another request is behind this one on the connection, or the
    connection is lost; a parked Fetch then finishes at once, because replies leave in request order.
    node_id: of the broker that was asked.
    """

    api_version: int
    client_id: str
    client_host: str
    advertised: Endpoint
    principal: str = "User:ANONYMOUS"
    hurry: Signal = field(default_factory=Signal)
    node_id: int = 0


class Refused(Exception):
    """A request gets no answer, and its connection is closed; str() is the line for the log.

    level: logging.WARNING where the client sent what cannot be served, logging.ERROR where the fault is ours;
    then the cause's traceback is logged too.
    """

    def __init__(self, why: str, level: int = logging.WARNING) -> None:
        super().__init__(why)
        self.level = level


class Clock(Protocol):
    """What is used of Twisted's IReactorTime: the reactor, or `twisted.internet.task.Clock` in tests."""

    def seconds(self) -> float: ...
    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> Any: ...


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
    fetch_sessions: FetchSessions = field(default_factory=FetchSessions)

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
