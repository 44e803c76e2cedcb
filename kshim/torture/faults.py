"""The table of what a torture does to a program: each fault, how it is done, and the bug that it finds."""

from __future__ import annotations

from enum import Flag, auto
from typing import Final, NamedTuple


class Needs(Flag):
    """What a run must have for a fault to make sense."""

    NOTHING = 0
    BROKERS = auto()
    """More than one broker."""
    NO_ORDER = auto()
    """No promise of an order by key."""
    GROUP = auto()
    """A group that the program's instances join."""


class Request(NamedTuple):
    """How requests fail, as `kshim fault add` takes it."""

    api: str
    error: str = ""
    close: str = ""
    delay_ms: int = 0
    times: int = 0


class Fault(NamedTuple):
    """One kind of fault."""

    name: str
    does: str
    finds: str
    weight: int = 1
    """How often it is drawn, next to the others."""
    lasts_ms: tuple[int, int] = (0, 0)
    """The shortest and the longest time that it lasts; 0 for what is over at once."""
    is_of_instance: bool = False
    """True if it strikes one instance; else it strikes the server, or the whole group."""
    needs: Needs = Needs.NOTHING
    requests: tuple[Request, ...] = ()
    """For a fault of requests: one of these is chosen."""


_ERRORS: Final = (
    Request("Heartbeat", "NOT_COORDINATOR", times=2),
    Request("Heartbeat", "REBALANCE_IN_PROGRESS", times=1),
    Request("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2),
    Request("Fetch", "KAFKA_STORAGE_ERROR", times=2),
    Request("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=2),
    Request("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", times=2),
    Request("SyncGroup", "REBALANCE_IN_PROGRESS", times=1),
    Request("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=2),
    Request("Produce", "NOT_LEADER_OR_FOLLOWER", times=2),
)
"""Errors that every client repeats the request after. docs/faults.md has what clients do."""

FAULTS: Final = {
    fault.name: fault
    for fault in (
        Fault(
            "kill",
            "an instance is killed (SIGKILL), its session ends, and it is started again",
            "a commit before the processing; results that are only in memory",
            weight=6,
            lasts_ms=(300, 1500),
            is_of_instance=True,
        ),
        Fault(
            "stop",
            "an instance is asked to end (SIGTERM), and is started again",
            "records in hand that are dropped, or committed unprocessed, when the program ends",
            weight=3,
            lasts_ms=(300, 1500),
            is_of_instance=True,
        ),
        Fault(
            "freeze",
            "an instance stands still (SIGSTOP) for longer than its session, and goes on",
            "a zombie that goes on with partitions of others; a commit that is refused, and nobody looks",
            weight=4,
            lasts_ms=(800, 2000),
            is_of_instance=True,
        ),
        Fault(
            "slow",
            "an instance gets a tenth of its time, and is put out of its group as if it had not polled",
            "work that goes on after max.poll.interval.ms; a commit after the partitions are gone",
            weight=2,
            lasts_ms=(800, 2000),
            is_of_instance=True,
        ),
        Fault(
            "expire",
            "the session of an instance's member ends, though it lives",
            "UNKNOWN_MEMBER_ID that is not survived; records in hand that nobody commits or repeats",
            weight=2,
            is_of_instance=True,
            needs=Needs.GROUP,
        ),
        Fault(
            "rebalance",
            "the group rebalances",
            "no commit when partitions are revoked; work that outlives the assignment",
            weight=3,
            needs=Needs.GROUP,
        ),
        Fault(
            "join",
            "one more instance joins for a while, and leaves",
            "state that is kept for partitions which another instance has now",
            weight=2,
            lasts_ms=(1500, 4000),
            needs=Needs.GROUP,
        ),
        Fault(
            "coordinator",
            "another broker coordinates the group",
            "a commit that is given up after NOT_COORDINATOR",
            weight=2,
            needs=Needs.BROKERS | Needs.GROUP,
        ),
        Fault(
            "leader",
            "another broker leads a partition",
            "records that are skipped, or read again, after a new leader",
            needs=Needs.BROKERS,
        ),
        Fault(
            "broker",
            "a broker stops, and starts again",
            "connections that are not opened again; a send whose failure nobody sees",
            weight=2,
            lasts_ms=(800, 2000),
            needs=Needs.BROKERS,
        ),
        Fault(
            "errors",
            "a few requests fail with an error after which clients ask again",
            "an error that ends the program, or that is taken for an answer",
            weight=2,
            lasts_ms=(1000, 1000),
            requests=_ERRORS,
        ),
        Fault(
            "late",
            "answers come half a second late, for a while",
            "a commit that overtakes another; time-outs that are not survived",
            weight=2,
            lasts_ms=(800, 1500),
            requests=tuple(
                Request(api, delay_ms=500) for api in ("OffsetCommit", "Fetch", "Heartbeat", "Produce")
            ),
        ),
        Fault(
            "disconnect",
            "connections are closed in the middle of a request",
            "a request that is given up, or whose failure nobody sees",
            weight=2,
            lasts_ms=(1000, 1000),
            requests=tuple(
                Request(api, close="before", times=2) for api in ("Fetch", "OffsetCommit", "Produce")
            ),
        ),
        Fault(
            "commit-lost",
            "a commit is performed, and its answer lost",
            "a commit that counts as failed and is undone; one that goes back",
            weight=3,
            lasts_ms=(1000, 1000),
            requests=(
                Request("OffsetCommit", close="after", times=2),
                Request("TxnOffsetCommit", close="after", times=1),
            ),
            needs=Needs.GROUP,
        ),
        Fault(
            "commit-fails",
            "commits fail, as in a rebalance or with a coordinator that is loading",
            "a commit whose error nobody looks at; a failed commit that is repeated too late",
            weight=2,
            lasts_ms=(1000, 1000),
            requests=(
                Request("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2),
                Request("OffsetCommit", "NOT_COORDINATOR", times=2),
                Request("OffsetCommit", "REBALANCE_IN_PROGRESS", times=1),
            ),
            needs=Needs.GROUP,
        ),
        Fault(
            "write-lost",
            "the program's write is performed, and its answer lost",
            "a producer without idempotence writes the record twice",
            weight=2,
            lasts_ms=(1000, 1000),
            requests=(Request("Produce", close="after", times=2),),
        ),
        Fault(
            "partitions",
            "partitions are added to the topic",
            "auto.offset.reset=latest loses the first records of a new partition",
            needs=Needs.NO_ORDER,
        ),
        Fault(
            "static",
            "a static member (group.instance.id) is fenced, as if another had its id",
            "FENCED_INSTANCE_ID that is not survived; one id for several instances",
            is_of_instance=True,
            needs=Needs.GROUP,
        ),
        Fault(
            "producer",
            "a transactional producer is fenced, as if another had its transactional.id",
            "a transaction that is repeated after it was fenced; offsets that are committed without it",
            is_of_instance=True,
        ),
        Fault(
            "aborted",
            "records of an aborted transaction lie among the others",
            "isolation.level=read_uncommitted processes what was never committed",
        ),
    )
}

ABORTED: Final = "aborted"
"""Only drawn if it is named, or exactly-once is promised: most programs may read such records."""


def names_for(needs: Needs) -> list[str]:
    """The faults for which a run has all that they need."""
    return [name for name, fault in FAULTS.items() if fault.needs & ~needs == Needs.NOTHING]
