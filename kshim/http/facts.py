"""What the answers are made of: the parts of the server that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred

from kshim.cluster import Cluster
from kshim.control.commands import Commands
from kshim.coordination.interfaces import Groups
from kshim.network.listeners import BrokerListeners
from kshim.network.traffic import Traffic
from kshim.quotas.quotas import Quotas
from kshim.recorder.recorder import Recorder
from kshim.requests.aside import Aside
from kshim.requests.rounds import Rounds
from kshim.requests.unread import Unread
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Activity, Log

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The server, as far as it is shown."""

    cluster: Cluster
    groups: Groups
    log: Log
    listeners: Mapping[int, BrokerListeners]
    """By node id."""
    quotas: Mapping[int, Quotas]
    """By node id."""
    clock: Clock
    """For how long browsers wait."""
    rounds: Rounds
    wall_clock: Clock
    """The time of groups, which may be steered."""
    aside: Aside
    unread: Unread
    traffic: Traffic
    recorder: Recorder
    activity: Callable[[], Activity]
    """Of the store."""
    why_not_ready: Callable[[], str]
    """What clients have to wait for; empty if for nothing."""
    look: Callable[[], Deferred[None]] | None = None
    """Called before offsets are told, which are from its firing on as they are now; None if they always are.
    """
    notice: Callable[[str], str] = lambda _: ""
    """What people should know of a group besides, a sentence; empty if nothing."""
    commands: Commands = field(default_factory=dict)
    """What may be steered over HTTP; empty if nothing may."""
