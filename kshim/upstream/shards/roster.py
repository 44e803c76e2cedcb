"""The processes that share the shards, and which of them has to lead which, as far as this one knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.storage.clock import Clock
from kshim.upstream.fellows import Fellow, Gone, new_fellow
from kshim.upstream.interfaces import Addresses
from kshim.upstream.shards.membership import Assigned


class Roster:
    """Changes with each assignment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.addresses: Callable[[], Addresses] = dict
        """Returns where clients reach this process."""
        self.ports: Callable[[], Mapping[int, int]] = dict
        """Returns how far its port for each upstream broker is from there, by the broker's node id."""
        self.names: Mapping[str, HostPattern] = {}
        """The brokers' names at this process's listeners where they share a port, by listener name."""
        self.http: Callable[[], Endpoint | None] = lambda: None
        """Returns where the HTTP interface of this process is."""
        self.has_left = False
        """True once this process has handed its shards over, and is no member any more."""
        self._has_met = False
        self.assigned: Assigned | None = None
        """The last assignment of this process; None before it has one."""
        self.before: Assigned | None = None
        """The assignment of the others when this process started: clients may come before the group has
        rebalanced.
        """
        self._gone = Gone()

    def take(self, assigned: Assigned) -> Assigned | None:
        """Take a new assignment; return the one before it."""
        before, self.assigned = self.assigned, assigned
        self._has_met = self.has_met
        known = before or self.before
        self._gone.note(() if known is None else known.everybody, assigned.everybody, self._clock.seconds())
        return before

    @property
    def ours(self) -> frozenset[int]:
        """The shards that this process has to lead."""
        return frozenset() if self.assigned is None else self.assigned.ours

    def leader(self, shard: int) -> Fellow | None:
        """Return the process that has to lead the shard; None if this one is alone."""
        assigned = self.assigned or self.before
        return None if assigned is None or not self.fellows() else assigned.leaders.get(shard)

    def here(self) -> Fellow:
        """Return this process, as the others see it."""
        return new_fellow(self.addresses(), self.ports(), self.names, self.http())

    @property
    def has_met(self) -> bool:
        """True once this process has known of another one."""
        self._has_met = self._has_met or bool(self.fellows())
        return self._has_met

    def fellows(self) -> tuple[Fellow, ...]:
        """Return all processes that share the shards, with this one; empty if it is alone."""
        if self.assigned is not None:
            everybody = self.assigned.everybody
        elif self.before is not None:
            ourselves = self.here()
            others = (each for each in self.before.everybody if each.node_id != ourselves.node_id)
            everybody = (*others, ourselves)
        else:
            everybody = ()
        return everybody if len(everybody) > 1 or self.has_left else ()

    def gone(self) -> tuple[Fellow, ...]:
        """Return the processes that shared the shards until lately."""
        gone = self._gone.at(self._clock.seconds())
        return tuple(each for each in gone if each.is_reached)
