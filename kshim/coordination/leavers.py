"""Members that are gone, and the news that their connections give of them.

A process that is killed closes its connections, one that is frozen keeps them open. A consumer that closes
leaves its groups, and its connections end at once; a client whose program has not polled for
max.poll.interval.ms leaves, too, but keeps its connections, and comes back on the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from kshim.coordination.groups.rebalance_record import Departure, Part, Rebalance, RebalanceBegan
from kshim.coordination.groups.trigger import Gone, LastContact, Trigger

if TYPE_CHECKING:
    from kshim.callers import RequestContext
    from kshim.callers.context import Client, Membership
    from kshim.storage.clock import Clock

Key = TypeVar("Key")
Value = TypeVar("Value")
CLOSES_S = 3.0
"""So soon after it has left, a client that closes has ended its connection."""
MOST = 1_000
"""Most members that are watched at a time. Others are not reported."""
MOST_DEPARTURES = 5_000
"""Most members whose departures are remembered; the first are forgotten."""
MOST_REASON = 200
LOOK_S = 1.0
"""How often all open connections are looked through, at most."""
WITHOUT_A_WORD = frozenset((Gone.EXPIRED, Gone.EVICTED, Gone.SILENT, Gone.UNREVOKED))
"""How members are gone that have not said so."""


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
    """The open connections of members, and the members that are gone lately.

    Members are kept by hashes of their names, as clients choose how long the names are.
    """

    def __init__(self, clock: Clock, report: Callable[[object], object]) -> None:
        self._clock = clock
        self._report = report
        self._watched = 0
        self._open: set[Client] = set()
        """Connections over which a member has spoken."""
        self._departures: dict[int, Departure] = {}
        self._before: dict[Client, int] = {}
        """Clients that join anew, with the member that each was before."""
        self._by_member: set[int] = set()
        """The members of the open connections, as of `_looked_s`."""
        self._looked_s = -LOOK_S

    # ---- requests and connections

    def speaks(self, client: Client, group_id: str, member_id: str) -> None:
        """Note that a member, or a client that wants to be one, uses a connection."""
        if client.observer is None:
            client.observer = self._ended
            self._open.add(client)
            known = self._departures.get(_key(group_id, member_id))
            if known is not None and known.gone is None:  # its older connection has ended
                known.contact = None

    def joins(self, client: Client, group_id: str, member_id: str) -> None:
        """Note that a client joins. It may have been a member before, in the consumer protocol with the same
        id.
        """
        self.speaks(client, group_id, member_id)
        was, key = client.member, _key(group_id, member_id)
        if was is not None and was.group_id == group_id and was.member_id != member_id:
            key = _key_of(was)
        known = self._departures.get(key)
        if known is not None and known.gone is not None:
            self._before[client] = key
            _bound(self._before, MOST)

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
            self._departure(_key(found.group_id, found.member_id)).contact = LastContact.OPEN
            self._report(found)

    def _ended(self, client: Client) -> None:
        self._open.discard(client)
        self._before.pop(client, None)
        if client.member is not None:
            departure = self._departure(_key_of(client.member))
            if departure.gone is None or departure.contact is None:
                departure.contact = LastContact(client.contact)

    # ---- reports of the coordinator

    def complete(self, report: object) -> None:
        """Add to a report what is known about the connections of its members."""
        if isinstance(report, RebalanceBegan) and report.trigger is Trigger.SESSION_EXPIRED:
            for who in report.members:
                key = _key(report.group_id, who.member_id)
                self._note_if_open(key)
                self._departure(key).gone = Gone.EXPIRED  # what its connection does from now on is no news
        elif isinstance(report, Rebalance):
            for part in report.parts.values():
                if part.gone is not None:
                    self._departs(report.group_id, part)
            if report.trigger is Trigger.MEMBER_JOINED and report.members:
                report.came_back = self._came_back(report.group_id, report.members[0].member_id)

    def _departs(self, group_id: str, part: Part) -> None:
        key = _key(group_id, part.who.member_id)
        departure = part.departure = self._departure(key)
        departure.gone, departure.gone_ms = part.gone, part.gone_ms
        if part.gone in WITHOUT_A_WORD:
            self._note_if_open(key)

    def _came_back(self, group_id: str, member_id: str) -> Departure | None:
        """Return how the client of a new member ceased to be a member of the group before."""
        key = _key(group_id, member_id)
        client = next((each for each in self._before if each.member and _key_of(each.member) == key), None)
        if client is None:
            return None
        departure = self._departures.pop(self._before.pop(client), None)
        if departure is None or departure.gone is None:
            return None
        departure.contact = LastContact.OPEN
        return departure

    def _departure(self, key: int) -> Departure:
        known = self._departures.get(key)
        if known is None:
            known = self._departures[key] = Departure()
            _bound(self._departures, MOST_DEPARTURES)
        return known

    def _note_if_open(self, key: int) -> None:
        """Note that a connection of the member is open, if one is. O(open connections), once in LOOK_S."""
        departure = self._departure(key)
        if departure.contact is not None:
            return
        now_s = self._clock.seconds()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._by_member = {_key_of(each.member) for each in self._open if each.member is not None}
        if key in self._by_member:
            departure.contact = LastContact.OPEN


def _key(group_id: str, member_id: str) -> int:
    return hash((group_id, member_id))


def _key_of(member: Membership) -> int:
    return _key(member.group_id, member.member_id)


def _bound(known: dict[Key, Value], most: int) -> None:
    """Forget the first of more than `most` entries."""
    if len(known) > most:
        del known[next(iter(known))]
