"""The parts of a broker that an API is handed.

There are two backends: kshim's own cluster and log (`Broker`), and an upstream, which keeps both itself. The
views of a broker of either backend have only what both have. The others need a local cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kshim.answering.replies import Replies
    from kshim.callers import RequestContext
    from kshim.callers.arrivals import Arrivals
    from kshim.callers.once import Once
    from kshim.cluster import Cluster, KnownCluster
    from kshim.cluster.decisions import Decisions
    from kshim.configs.config import Config
    from kshim.coordination.interfaces import Groups, TransactionPartitions, Transactions
    from kshim.quotas.quotas import Quotas
    from kshim.storage.clock import TimerClock
    from kshim.storage.interfaces import Log
    from kshim.turns.aside import Aside
    from kshim.turns.rounds import Rounds
    from kshim.turns.unread import Unread

ApiFunction = Callable[[Any, "RequestContext", Any], Any]
"""An API's function, called with (view of the broker, context, request)."""


class AnyView(Protocol):
    """A broker of either backend: its node id, its settings, and the rounds in which long requests take
    turns.
    """

    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> Config: ...
    @property
    def rounds(self) -> Rounds: ...
    @property
    def aside(self) -> Aside: ...
    @property
    def once(self) -> Once: ...
    def now_ms(self) -> int: ...


class Answering(AnyView, Protocol):
    """A broker of either backend, with the parts that every request needs whatever its API."""

    @property
    def clock(self) -> TimerClock: ...
    @property
    def unread(self) -> Unread: ...
    @property
    def arrivals(self) -> Arrivals: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def replies(self) -> Replies: ...
    @property
    def authorizer(self) -> Decisions | None: ...


class KnownClusterView(AnyView, Protocol):
    """A broker of either backend, and its cluster."""

    @property
    def cluster(self) -> KnownCluster: ...


class GroupsView(KnownClusterView, Protocol):
    """The group coordinator of either backend, and the topics for which groups commit offsets."""

    @property
    def groups(self) -> Groups: ...


class MembersView(GroupsView, Protocol):
    """A `GroupsView` for members that subscribe to topics which they may see."""

    @property
    def authorizer(self) -> Decisions | None: ...


class OffsetsView(GroupsView, Protocol):
    """The same, for offsets that are committed in transactions."""

    @property
    def transactions(self) -> TransactionPartitions: ...

    def has_offsets(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """True if the shard certainly has offsets of this transaction, which is under way."""


class ClusterView(AnyView, Protocol):
    """The local cluster, as one of its brokers sees it."""

    @property
    def cluster(self) -> Cluster: ...


class LogView(ClusterView, Protocol):
    """The local cluster and its records."""

    @property
    def log(self) -> Log: ...


class CoordinatorView(ClusterView, Protocol):
    """The local cluster and both coordinators."""

    @property
    def groups(self) -> Groups: ...
    @property
    def transactions(self) -> Transactions: ...
