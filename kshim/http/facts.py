"""The parts of the server that the answers are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred

from kshim.cluster import KnownCluster, Topic
from kshim.cluster.described import DescribedConfig
from kshim.control.commands import Commands
from kshim.control.others import Others
from kshim.coordination.interfaces import Groups
from kshim.http.asking import Ask
from kshim.http.families import Figure
from kshim.http.remarks import Remarks
from kshim.network.listeners import BrokerListeners
from kshim.network.traffic import Traffic
from kshim.quotas.quotas import Quotas
from kshim.recorder.recorder import Recorder
from kshim.storage.clock import Clock, TimerClock
from kshim.storage.interfaces import Activity, PartitionEnds
from kshim.turns.aside import Aside
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The parts of a server that HTTP shows."""

    cluster: KnownCluster
    groups: Groups
    ends: PartitionEnds
    listeners: Mapping[int, BrokerListeners]
    """Each broker's listeners, by node id."""
    quotas: Mapping[int, Quotas]
    """Each broker's quotas, by node id."""
    clock: TimerClock
    """Real time: it measures time-outs of HTTP connections, and is never steered."""
    rounds: Rounds
    wall_clock: Clock
    """The time of groups, which `kshim clock` may move ahead or hold."""
    aside: Aside
    unread: Unread
    traffic: Traffic
    recorder: Recorder
    activity: Callable[[], Activity]
    """Returns what the store is doing."""
    why_not_ready: Callable[[], str]
    """Returns why clients cannot use all of the server yet; empty if they can."""
    figures: Callable[[], Iterable[Figure]] = tuple
    """Returns what the metrics show of what is behind this server."""
    look: Callable[[], Deferred[None]] | None = None
    """Called before offsets are shown: when it fires, they are current. None if they always are."""
    notice: Callable[[str], str] = lambda _: ""
    """Returns a sentence that the page shows about a group, given its id; empty if there is none."""
    others: Others | None = None
    """Asks the other processes that share the groups; None where there can be none."""
    ask: Ask | None = None
    """Asks a broker of this process; None where the records are elsewhere."""
    topic_configs: Callable[[Topic], Iterable[DescribedConfig]] | None = None
    """Returns all configs of a topic; None where they are elsewhere."""
    remarks: Remarks = field(default_factory=Remarks)
    commands: Commands = field(default_factory=dict)
    """The commands that HTTP accepts."""
    is_steered: bool = False
    """True if they are all commands, not only those that read."""
