"""Notices members that leave and stay connected: their programs did not poll in time, or unsubscribed.

A consumer that closes leaves its groups, and its connections end at once. A client whose program has not
polled for max.poll.interval.ms leaves, too, but keeps its connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from kshim.callers import RequestContext
    from kshim.callers.context import Client
    from kshim.storage.clock import Clock

CLOSES_S = 3.0
"""So soon after it has left, a client that closes has ended its connection."""
MOST = 1_000
"""Most members that are watched at a time. Others are not reported."""
MOST_REASON = 200


@dataclass(frozen=True, slots=True)
class LeftConnected:
    """A report: a member has left, and is still connected."""

    group_id: str
    member_id: str
    client_id: str
    client_host: str
    reason: str
    """The reason that its client gave (KIP-800); empty if it gave none."""
    kind: ClassVar = "left but connected"

    def __str__(self) -> str:
        who = f"{self.member_id} (client {self.client_id} at {self.client_host.removeprefix('/')})"
        left = f"group {self.group_id}: {who} left, but is still connected"
        if self.reason:
            return f'{left}; it said "{self.reason}"'
        return f"{left}: its program probably exceeded max.poll.interval.ms, or it unsubscribed"


class Leavers:
    """The members that have left a moment ago."""

    def __init__(self, clock: Clock, report: Callable[[object], object]) -> None:
        self._clock = clock
        self._report = report
        self._watched = 0

    def left(self, context: RequestContext, group_id: str, member_id: str, reason: str = "") -> None:
        """Look after a member that asks to leave. An administrator who removes others is not one."""
        client = context.client
        if client is None or client.member is None or self._watched >= MOST:
            return
        if (client.member.group_id, client.member.member_id) != (group_id, member_id):
            return
        self._watched += 1
        found = LeftConnected(
            group_id, member_id, context.client_id, context.client_host, reason[:MOST_REASON]
        )
        self._clock.callLater(CLOSES_S, self._look, client, found)

    def _look(self, client: Client, found: LeftConnected) -> None:
        self._watched -= 1
        if not client.is_gone:
            self._report(found)
