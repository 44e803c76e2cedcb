"""The parts of a broker that an API is handed: the cluster, and with it the log or the coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kshim.cluster import Cluster
    from kshim.configs.config import Config
    from kshim.coordination.interfaces import Groups, Transactions
    from kshim.storage.interfaces import Log
    from kshim.turns.aside import Aside
    from kshim.turns.rounds import Rounds


class ClusterView(Protocol):
    """The cluster, as one of its brokers sees it, and the rounds in which long requests take turns."""

    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> Config: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def rounds(self) -> Rounds: ...
    @property
    def aside(self) -> Aside: ...
    def now_ms(self) -> int: ...


class LogView(ClusterView, Protocol):
    """The cluster and its records."""

    @property
    def log(self) -> Log: ...


class CoordinatorView(ClusterView, Protocol):
    """The cluster and both coordinators."""

    @property
    def groups(self) -> Groups: ...
    @property
    def transactions(self) -> Transactions: ...
