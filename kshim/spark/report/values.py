"""What a report holds: small values, made by Spark from a log of any size. Times are ms since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

KINDS: Final = ("joined", "left", "lost", "topic", "other")
"""What set a rebalance off, in five kinds. lost: a member was not heard in time. topic: a topic changed."""


class Steps(NamedTuple):
    """A span of time in `number` equal steps. Times in ms."""

    began_ms: int
    ended_ms: int
    number: int

    @property
    def width_ms(self) -> float:
        return max(self.ended_ms - self.began_ms, 1) / self.number

    def ends_ms(self) -> list[int]:
        """When each step ends."""
        return [self.began_ms + round((index + 1) * self.width_ms) for index in range(self.number)]


class Mark(NamedTuple):
    """The rebalances of one kind that a group had in one step."""

    step: int
    kind: str
    times: int


@dataclass
class Group:
    """What one group did, step by step."""

    name: str
    lag: dict[int, int] = field(default_factory=dict)
    """By step; a step without one is one before the group's first commit, or after its offsets' deletion."""
    commits: dict[int, int] = field(default_factory=dict)
    """By step, how often it committed."""
    marks: list[Mark] = field(default_factory=list)


class Rebalance(NamedTuple):
    """One rebalance. What only kshim records is None for other clusters."""

    group: str
    generation: int
    began_ms: int
    members: int
    joined: tuple[str, ...]
    """The clients that came, as CLIENT_ID@HOST."""
    left: tuple[str, ...]
    kind: str
    cause: str | None
    caused_by: str | None
    reason: str | None
    took_ms: int | None
    moved: int | None
    unowned_ms: int | None
    story: tuple[str, ...]


class Behind(NamedTuple):
    """One group's lag in one partition, now."""

    group: str
    topic: str
    partition: int
    offset: int
    end_offset: int | None
    lag: int | None
    lag_seconds: float | None
    beyond_end: bool | None
    stuck_seconds: float | None
    """How long the offset has not changed, if that is long enough to count as stuck; else None."""


class Flapping(NamedTuple):
    """A group that rebalanced too often within one window of time."""

    group: str
    began_ms: int
    ended_ms: int
    rebalances: int
    client: str | None
    cause: str | None


class Asked(NamedTuple):
    """What the user calls stuck and flapping."""

    stuck_for_s: float
    within: str
    at_least: int


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    bootstrap: str
    made_ms: int
    steps: Steps
    asked: Asked
    commits: int
    """How many commits of all groups the log has in this time."""
    rebalances: int
    """How many rebalances of all groups."""
    group_count: int
    groups: tuple[Group, ...]
    """The ones with the most lag or rebalances; at most as many as the page can show."""
    behind: tuple[Behind, ...]
    """The partitions with the most lag."""
    flapping: tuple[Flapping, ...]
    """The worst first; a group may be there for several windows."""
    latest: tuple[Rebalance, ...]
    """The latest rebalances, newest first."""
    causes: tuple[tuple[str, int], ...]
    """How often each cause set off a rebalance; empty if no causes are known."""

    @property
    def stuck(self) -> tuple[Behind, ...]:
        return tuple(row for row in self.behind if row.stuck_seconds is not None)
