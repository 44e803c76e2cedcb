"""The broker that serves a request.

An api function is called as `function(broker, context, request)`. The `Broker` is the same for all requests
to one node; the `RequestContext` is made anew for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kshim.answering.replies import Replies
from kshim.answering.written import WrittenArrays
from kshim.callers import RequestContext
from kshim.cluster import GROUP_METADATA_TOPIC
from kshim.configs.endpoint import Endpoint
from kshim.producing.rules import in_transaction

if TYPE_CHECKING:
    from kshim.callers.arrivals import Arrivals
    from kshim.callers.once import Once
    from kshim.cluster import Cluster
    from kshim.cluster.authorizer import Authorizer
    from kshim.configs.config import Config
    from kshim.coordination.interfaces import Groups, Transactions
    from kshim.fetching.sessions import FetchSessions
    from kshim.producing.appends import ProducerAppends
    from kshim.quotas.quotas import Quotas
    from kshim.storage.clock import Clock, TimerClock
    from kshim.storage.interfaces import Log
    from kshim.turns.aside import Aside
    from kshim.turns.rounds import Rounds
    from kshim.turns.unread import Unread


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker, made at start and passed to every api function.

    The brokers of one process share everything but their node_id, their fetch sessions and their quotas.
    """

    node_id: int
    config: Config
    cluster: Cluster
    log: Log
    groups: Groups
    transactions: Transactions
    clock: TimerClock
    """For how long clients wait; see `wall_clock`."""
    rounds: Rounds
    producers: ProducerAppends
    fetch_sessions: FetchSessions
    quotas: Quotas
    aside: Aside
    unread: Unread
    once: Once
    arrivals: Arrivals
    replies: Replies
    wall_clock: Clock
    """The time that records, groups and transactions go by; people may move it ahead, or hold it."""
    authorizer: Authorizer | None = None
    """Who may do what; without one, everybody everything."""
    written: WrittenArrays = field(default_factory=WrittenArrays)

    def endpoint(self, context: RequestContext, node_id: int) -> Endpoint | None:
        """The address at which this client reaches the broker `node_id`; None while that one does not run."""
        return self.address(context, node_id) if node_id in self.cluster.running else None

    def address(self, context: RequestContext, node_id: int) -> Endpoint:
        """The address of the broker `node_id`, running or not: brokers have consecutive ports."""
        found_us = context.advertised
        return Endpoint(found_us.host, found_us.port + node_id - self.node_id)

    def has_offsets(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """True if the shard, a partition of __consumer_offsets, has offsets of this open transaction."""
        partition = self.cluster.topics[GROUP_METADATA_TOPIC].partition(shard)
        assert partition is not None
        return in_transaction(self.log.producers(partition.partition_no).get(producer_id), producer_epoch)

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""
        return int(self.wall_clock.seconds() * 1000)
