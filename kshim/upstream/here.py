"""kshim's own broker in front of an upstream, which answers what is not passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kshim.callers import RequestContext
from kshim.configs.endpoint import Endpoint

if TYPE_CHECKING:
    from kshim.answering.replies import Replies
    from kshim.answering.views import Answering, MembersView, OffsetsView
    from kshim.callers.arrivals import Arrivals
    from kshim.callers.once import Once
    from kshim.cluster.decisions import Decisions
    from kshim.configs.config import Config
    from kshim.coordination.interfaces import Groups
    from kshim.quotas.quotas import Quotas
    from kshim.storage.clock import Clock, TimerClock
    from kshim.turns.aside import Aside
    from kshim.turns.rounds import Rounds
    from kshim.turns.unread import Unread
    from kshim.upstream.mirror import Mirror
    from kshim.upstream.transactions import UpstreamTransactions

HERE: Final = 0
"""The node id of kshim's coordinator, which all ports of this process share."""
OWN_VERSION: Final = 9
"""A version in which requests about groups name topics, not their ids."""


def own_context() -> RequestContext:
    """The context of requests that kshim makes of its own coordinator."""
    return RequestContext(OWN_VERSION, "kshim", "/127.0.0.1", Endpoint("127.0.0.1", 0), node_id=HERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Implements `Answering`, `MembersView` and `OffsetsView`. It has groups, but no log, and no cluster
    that it could change.

    The ports have one each, which differ in their node id only.
    """

    node_id: int = HERE
    """HERE, or the upstream broker at whose port a request arrived."""
    config: Config
    cluster: Mirror
    groups: Groups
    transactions: UpstreamTransactions
    clock: TimerClock
    rounds: Rounds
    quotas: Quotas
    """None is in force: clients have their quotas at the upstream."""
    aside: Aside
    unread: Unread
    once: Once
    arrivals: Arrivals
    replies: Replies
    wall_clock: Clock
    """The time that groups go by; people may move it ahead, or hold it."""
    authorizer: Decisions | None = None
    """What the upstream lets one client do, if clients authenticate there; else None."""

    def has_offsets(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """Return False: the shard's log has to be read first, which the transactions do."""
        return False

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""
        return int(self.wall_clock.seconds() * 1000)


if TYPE_CHECKING:
    _IMPLEMENTS: tuple[type[Answering], type[MembersView], type[OffsetsView]] = (Here, Here, Here)
