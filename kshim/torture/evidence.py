"""The traces of a run as values: what was produced, fetched, processed and committed, by whom and when.

All times are in ms since 1970, by the machine's clock, which the server and the run share. A program's
instance is named c1, c2, …; "" stands for one that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

Partition = tuple[str, int]
"""A topic and the number of a partition."""


class Place(NamedTuple):
    """The place of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


class Input(NamedTuple):
    """A record that was produced for the program. Numbers rise by one, in the order of production."""

    number: int
    key: str
    place: Place
    at_ms: float
    is_aborted: bool = False
    """True if the record's transaction was aborted, so that no program should process it."""


class Processed(NamedTuple):
    """A sign that the program has processed the record with this number."""

    number: int
    at_ms: float
    by: str = ""
    where: tuple[int, int] | None = None
    """The partition and the offset of the output; None for a line on standard output."""
    late_ms: float = 0.0
    """By how much the sign may have been earlier, because this machine was too busy to read it."""

    @property
    def earliest_ms(self) -> float:
        return self.at_ms - self.late_ms


class Fetched(NamedTuple):
    """Records that an instance was sent: the offsets from `first` to `last`."""

    partition: Partition
    first: int
    last: int
    at_ms: float
    by: str


class Commit(NamedTuple):
    """An offset that an instance committed, and the error that it was answered; "" for none."""

    partition: Partition
    offset: int
    at_ms: float
    by: str
    error: str = ""
    transaction: str = ""
    """The transactional id, if the commit is part of a transaction."""


class Assigned(NamedTuple):
    """The partitions that an instance was given; it lost all others."""

    partitions: tuple[Partition, ...]
    at_ms: float
    by: str


class Begun(NamedTuple):
    """The committed offset that an instance was told, and where it goes on; -1 for none."""

    partition: Partition
    offset: int
    at_ms: float
    by: str


class Happening(NamedTuple):
    """Something that was done to the program or to the server, in words that follow a time."""

    at_ms: float
    text: str
    instance: str = ""
    """The instance that it was done to; "" for the server, or the whole group."""
    until_ms: float | None = None
    """The end of something that lasts."""
    fault: str = ""
    """The name of the fault; "" for what happened by itself."""


class Rebalanced(NamedTuple):
    """A rebalance of the group, as the server's recorder has it."""

    at_ms: float
    generation: int
    cause: str
    by: tuple[str, ...]
    """The instances that set it off."""
    moved: Mapping[Partition, tuple[str, str]]
    """From which instance to which each partition moved; "" for nobody."""


class Evidence(NamedTuple):
    """All traces of one run."""

    began_ms: float
    quiet_ms: float
    """When the last fault was over."""
    ended_ms: float
    inputs: Sequence[Input]
    processed: Sequence[Processed] | None
    """In the order in which the signs came; None if only committed offsets are known."""
    fetched: Sequence[Fetched]
    commits: Sequence[Commit]
    assigned: Sequence[Assigned]
    happened: Sequence[Happening]
    committed: Mapping[Partition, int]
    """The group's committed offsets at the end."""
    unknown: Sequence[str] = ()
    """Outputs that belong to no input, described."""
    rebalances: Sequence[Rebalanced] = ()
    begun: Sequence[Begun] = ()
    partitions: int = 1 << 31
    """How many partitions the topic had at the beginning; those above were added."""

    stopped_ms: float = inf
    """When the instances were asked to end."""

    @property
    def unheard(self) -> frozenset[Partition]:
        """Partitions that were added, and that no instance has at the end: the client that assigns hears of
        them only after metadata.max.age.ms, which is 5 minutes by default.
        """
        guests = {each.instance for each in self.happened if each.fault == "join"}
        latest = {
            each.by: each.partitions
            for each in self.assigned
            if each.by not in guests and each.at_ms <= self.stopped_ms
        }
        given = {partition for partitions in latest.values() for partition in partitions}
        added = {each.place[:2] for each in self.inputs if each.place.partition >= self.partitions}
        return frozenset(added - given)
