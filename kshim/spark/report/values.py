"""The data of a report: small values that Spark makes from a log of any size. Times are ms since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

KINDS: Final = ("joined", "left", "lost", "topic", "other")
"""The kinds of rebalances. lost: a member's session expired. topic: a topic changed."""

MOST_ROWS: Final = 100
"""The most rows of a table of the page, which says so if there are more."""


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
    """The history of one group, in steps."""

    name: str
    lag: dict[int, int] = field(default_factory=dict)
    """The lag by step. It is missing before the group's first commit, and after its offsets are deleted."""
    commits: dict[int, int] = field(default_factory=dict)
    """The number of commits by step."""
    marks: list[Mark] = field(default_factory=list)


class Rebalance(NamedTuple):
    """One rebalance. Fields that only kshim records are None for other clusters."""

    group: str
    generation: int
    began_ms: int
    members: int
    joined: tuple[str, ...]
    """The clients that joined, as CLIENT_ID@HOST."""
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
    """How long the offset has not changed, if that is long enough to be stuck; else None."""


class Unrevoked(NamedTuple):
    """A member of a consumer group that has not given up partitions for too long."""

    group: str
    client: str | None
    waiting_seconds: float
    rebalance_timeout_ms: int
    partitions: tuple[str, ...]
    """As TOPIC-PARTITION."""


class Flapping(NamedTuple):
    """A group that rebalanced too often within one window of time."""

    group: str
    began_ms: int
    ended_ms: int
    rebalances: int
    client: str | None
    cause: str | None


class Asked(NamedTuple):
    """The user's limits for calling a group stuck or flapping."""

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
    """The number of commits of all groups in the report's time."""
    rebalances: int
    """The number of rebalances of all groups in the report's time."""
    group_count: int
    groups: tuple[Group, ...]
    """The groups with the most lag or rebalances, at most as many as the page can show."""
    behind: tuple[Behind, ...]
    """The partitions with the most lag, stuck ones first; one more than MOST_ROWS if there are more."""
    unrevoked: tuple[Unrevoked, ...]
    """Members that do not give up partitions, the longest wait first; one more than MOST_ROWS if there are
    more.
    """
    flapping: tuple[Flapping, ...]
    """Flapping groups, the worst first; one more than MOST_ROWS if there are more. A group may have several
    entries, for different windows.
    """
    latest: tuple[Rebalance, ...]
    """The latest rebalances, newest first."""
    causes: tuple[tuple[str, int], ...]
    """How often each cause set off a rebalance; empty if no causes are known."""

    @property
    def stuck(self) -> tuple[Behind, ...]:
        return tuple(row for row in self.behind if row.stuck_seconds is not None)
