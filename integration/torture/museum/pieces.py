"""The pieces of the museum: each broken program, its mended twin, and the promise that tells them apart."""

from __future__ import annotations

from typing import Final, NamedTuple

from kshim.torture.promises import Anomaly

LOST, EARLY, STUCK = Anomaly.LOST, Anomaly.EARLY, Anomaly.STUCK
TWICE, BACK, LATE = Anomaly.DUPLICATED, Anomaly.WENT_BACK, Anomaly.LATE

REPORT: Final = ("--report",)
IN_ORDER: Final = (*REPORT, "--in-order")
AT_MOST: Final = (*REPORT, "--promise", "at-most-once")
WRITES: Final = ("--output", "out")
EXACTLY: Final = (*WRITES, "--promise", "exactly-once", "--settle", "25s", "--faults=-broker")
"""librdkafka waits beyond its time-out for a coordinator that is gone, to send a transaction's offsets."""
SLOW_START: Final = ("--start", "60s", "--settle", "40s")
"""A JVM takes seconds to start, and more on a busy machine."""
FENCING: Final = (*WRITES, "--promise", "exactly-once", *SLOW_START)
CALM: Final = (*WRITES, "--promise", "exactly-once", "--faults")
"""Without a crash, a program needs no transactions to process nothing twice. The faults' names follow."""


class Piece(NamedTuple):
    """A broken program and its mended twin."""

    client: str
    """The module of the programs."""
    broken: str
    mended: str
    bug: str
    anomalies: tuple[Anomaly, ...]
    """The torture of the broken program finds at least one of these."""
    options: tuple[str, ...] = REPORT

    @property
    def name(self) -> str:
        return f"{self.client}-{self.broken}"


_FIRST = "commits what it has polled, then processes it"
_THREAD = "hands records to a thread, while the client commits what was polled"
_LATEST = "auto.offset.reset=latest: what comes before the first commit is never read"

PIECES: Final = (
    Piece("kafka_python", "commit-first", "mended", _FIRST, (LOST, EARLY)),
    Piece("kafka_python", "auto-commit-and-thread", "mended", _THREAD, (LOST, EARLY)),
    Piece("kafka_python", "latest", "mended", _LATEST, (LOST, STUCK)),
    Piece("aiokafka_tasks", "tasks-and-auto-commit", "awaited", _THREAD, (LOST, EARLY)),
    Piece("confluent", "commit-first", "mended", _FIRST, (LOST, EARLY)),
    Piece("confluent", "auto-commit-and-pool", "pool-that-is-awaited", _THREAD, (LOST, EARLY)),
    Piece(
        *("confluent", "only-in-memory", "written-before-commit"),
        *("commits at once, and writes its results now and then", (LOST, EARLY)),
    ),
    Piece("confluent", "latest", "mended", _LATEST, (LOST, STUCK)),
    Piece(
        *("confluent", "new-static-id", "kept-static-id"),
        *("a new group.instance.id at each start: the old member keeps its partitions", (STUCK,)),
    ),
    Piece(
        *("confluent", "fenced-and-deaf", "kept-static-id"),
        *("takes no notice of FENCED_INSTANCE_ID, after which it gets nothing", (STUCK,)),
        options=(*REPORT, "--faults", "static,rebalance"),
    ),
    Piece(
        *("confluent", "pool-out-of-order", "a-thread-for-each-partition"),
        *("a thread for each record: those of a key overtake each other", (Anomaly.OUT_OF_ORDER,)),
        options=IN_ORDER,
    ),
    Piece(
        *("confluent", "mended", "at-most-once"),
        *("processes, then commits, though it promises at-most-once", (TWICE, LATE)),
        options=AT_MOST,
    ),
    Piece(
        *("confluent_writing", "not-awaited", "written"),
        *("commits what it has sent before that is acknowledged", (LOST, EARLY)),
        options=WRITES,
    ),
    Piece(
        *("confluent_writing", "not-idempotent", "idempotent"),
        *("enable.idempotence=false: a write whose answer is lost comes twice", (TWICE,)),
        options=(*CALM, "write-lost,leader"),
    ),
    Piece(
        *("confluent_writing", "no-commit-on-revoke", "commit-on-revoke"),
        *("commits now and then, and not when partitions are revoked", (TWICE,)),
        options=(*CALM, "rebalance,join,stop"),
    ),
    Piece(
        *("confluent_writing", "commit-on-assign", "commit-on-revoke"),
        *("commits in the wrong callback, on_assign, when others have gone on", (TWICE, BACK)),
        options=(*CALM, "rebalance,join,stop"),
    ),
    Piece(
        *("confluent_writing", "commits-that-go-back", "written"),
        *("commits without waiting, and repeats what failed: an old offset wins", (BACK, TWICE)),
        options=(*CALM, "commit-fails,coordinator"),
    ),
    Piece(
        *("confluent_writing", "offsets-beside", "exactly-once"),
        *("commits offsets after the transaction, so nobody is fenced", (TWICE, BACK)),
        options=EXACTLY,
    ),
    Piece(
        *("confluent_writing", "read-uncommitted", "exactly-once"),
        *("isolation.level=read_uncommitted", (Anomaly.ABORTED,)),
        options=EXACTLY,
    ),
    Piece(
        *("java", "executor-and-auto-commit", "executor-that-is-awaited", _THREAD, (LOST, EARLY)),
        options=(*REPORT, *SLOW_START),
    ),
    Piece(
        *("java", "seeks-from-memory", "forgets-on-revoke"),
        *("seeks to where it was itself, when a partition comes back", (TWICE, BACK)),
        options=(*CALM, "rebalance,join,stop", *SLOW_START),
    ),
    Piece(
        *("java", "transactions-without-fencing", "transactions"),
        *("a new transactional.id at each start, and offsets without the member", (TWICE, BACK)),
        options=FENCING,
    ),
)
