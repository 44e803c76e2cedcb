"""The promises that a program may make, and the anomalies that break them.

The anomalies have the names that people use for queues, as in Jepsen's workloads.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Anomaly(StrEnum):
    """What may be wrong with a record or a partition. The value is its name in the verdict."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    OUT_OF_ORDER = "out of order"
    EARLY = "committed before it was processed"
    LATE = "processed before it was committed"
    WENT_BACK = "a commit went back"
    STUCK = "stuck"
    TWO_OWNERS = "processed by two owners at once"
    ABORTED = "read from an aborted transaction"
    UNEXPECTED = "unexpected"


MEANING: Final = {
    Anomaly.LOST: "the group has committed past the record, or never read it, and no instance processed it",
    Anomaly.DUPLICATED: "the record was processed more than once",
    Anomaly.OUT_OF_ORDER: "a record was processed after a later one of its key",
    Anomaly.EARLY: "the offset was committed while the record was not processed: a crash then would lose it",
    Anomaly.LATE: "the record was processed before its offset was committed: a crash then would repeat it",
    Anomaly.WENT_BACK: "an accepted commit was lower than the one before: the records between come again",
    Anomaly.STUCK: "the record was not processed, or not committed, when nothing disturbed any more",
    Anomaly.TWO_OWNERS: "an instance processed the record after another one had been given its partition",
    Anomaly.ABORTED: "the record's transaction was aborted, and the program processed it",
    Anomaly.UNEXPECTED: "an output that belongs to no record that was produced",
}


class Promise(StrEnum):
    """What a program says of itself."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"
    AT_MOST_ONCE = "at-most-once"


ALWAYS: Final = frozenset((Anomaly.STUCK, Anomaly.UNEXPECTED, Anomaly.ABORTED))
"""Anomalies that break every promise."""
BREAKING: Final = {
    Promise.AT_LEAST_ONCE: ALWAYS | {Anomaly.LOST, Anomaly.EARLY},
    Promise.EXACTLY_ONCE: ALWAYS
    | {Anomaly.LOST, Anomaly.EARLY, Anomaly.DUPLICATED, Anomaly.WENT_BACK, Anomaly.TWO_OWNERS},
    Promise.AT_MOST_ONCE: ALWAYS | {Anomaly.DUPLICATED, Anomaly.LATE, Anomaly.WENT_BACK, Anomaly.TWO_OWNERS},
}


class Output(StrEnum):
    """What a program leaves behind, by which it is judged."""

    REPORT = "report"
    """Lines on standard output."""
    TOPIC = "output"
    """Records in a topic."""
    OFFSETS = "offsets"
    """Only the offsets that it commits."""


class Judged(NamedTuple):
    """A promise, and how it is shown."""

    promise: Promise
    output: Output
    in_order: bool = False

    @property
    def breaking(self) -> frozenset[Anomaly]:
        """The anomalies that break the promise."""
        return BREAKING[self.promise] | ({Anomaly.OUT_OF_ORDER} if self.in_order else set())


def cannot_show(judged: Judged, has_group: bool = True) -> str | None:
    """Why the output cannot show the promise, and what would; None if it can.

    has_group: False for a program that joins no group.
    """
    if judged.output is Output.OFFSETS and not has_group:
        return "a program without a group commits no offsets: name the program's --output TOPIC, or --report"
    if judged.output is Output.OFFSETS and judged.promise is not Promise.AT_LEAST_ONCE:
        return (
            f"committed offsets do not show {judged.promise}, as they do not say what was processed: "
            "name the program's --output TOPIC, or --report"
        )
    if judged.output is Output.OFFSETS and judged.in_order:
        return "committed offsets do not show an order: name the program's --output TOPIC, or --report"
    if judged.output is Output.REPORT and judged.promise is Promise.EXACTLY_ONCE:
        return (
            "--report does not show exactly-once: a line that was printed cannot be taken back when its "
            "transaction is aborted; name the program's --output TOPIC"
        )
    return None
