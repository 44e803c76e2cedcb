"""A good run of the demo as events, and short names to write events with."""

from kshim.demo.events import (
    Acknowledged,
    Assigned,
    Committed,
    Created,
    Event,
    Exited,
    GroupSeen,
    Joining,
    Killed,
    Offsets,
    Partitions,
    Ready,
    Received,
    Records,
    Revoked,
    Started,
    Stopping,
)
from kshim.demo.scene import Scene

A, B, C = "consumer-1", "consumer-2", "consumer-3"


def started(at_ms: int, name: str) -> Event:
    return Started(name=name, at_ms=at_ms)


def ready(at_ms: int) -> Event:
    return Ready(name="server", at_ms=at_ms, address="127.0.0.1:9092")


def joining(at_ms: int, name: str) -> Event:
    return Joining(name=name, at_ms=at_ms)


def assigned(at_ms: int, name: str, generation: int, *partitions: int) -> Event:
    return Assigned(name=name, at_ms=at_ms, generation=generation, partitions=partitions)


def revoked(at_ms: int, name: str, *partitions: int) -> Event:
    return Revoked(name=name, at_ms=at_ms, partitions=partitions)


def received(at_ms: int, name: str, *records: tuple[int, int, str]) -> Event:
    return Received(name=name, at_ms=at_ms, records=records)


def acknowledged(at_ms: int, name: str, *records: tuple[int, int, str]) -> Event:
    return Acknowledged(name=name, at_ms=at_ms, records=records)


def committed(at_ms: int, name: str, *offsets: tuple[int, int]) -> Event:
    return Committed(name=name, at_ms=at_ms, offsets=offsets)


def killed(at_ms: int, name: str) -> Event:
    return Killed(name=name, at_ms=at_ms)


def stopping(at_ms: int, name: str) -> Event:
    return Stopping(name=name, at_ms=at_ms)


def exited(at_ms: int, name: str, status: int = 0, said: str = "") -> Event:
    return Exited(name=name, at_ms=at_ms, status=status, said=said)


def seen(
    at_ms: int,
    members: dict[str, Partitions] | None = None,
    state: str = "Stable",
    committed: Offsets = (),
    ends: Offsets = (),
) -> Event:
    told = tuple(sorted((members or {}).items()))
    return GroupSeen(
        name="watcher", at_ms=at_ms, asked_ms=at_ms, state=state, members=told, committed=committed, ends=ends
    )


def scene_of(*events: Event, partitions: int = 4) -> Scene:
    scene = Scene(began_ms=0, partitions=partitions)
    for event in events:
        scene.apply(event)
    return scene


RECORDS: Records = ((0, 0, "producer-1 0"), (1, 0, "producer-1 1"), (0, 1, "producer-1 2"))

RUN: tuple[Event, ...] = (
    started(0, "server"),
    ready(300),
    Created(name="watcher", at_ms=400, topic="demo", partitions=4),
    started(500, "producer-1"),
    acknowledged(700, "producer-1", *RECORDS),
    started(800, A),
    started(800, B),
    joining(1_000, A),
    assigned(1_100, A, 1, 0, 1, 2, 3),
    joining(1_200, B),
    revoked(1_400, A, 0, 1, 2, 3),
    assigned(1_420, A, 2, 0, 1),
    assigned(1_430, B, 2, 2, 3),
    received(1_500, A, *RECORDS),
    committed(1_550, A, (0, 2), (1, 1)),
    seen(2_000, {A: (0, 1), B: (2, 3)}, committed=((0, 2), (1, 1)), ends=((0, 2), (1, 1), (2, 40), (3, 2))),
    killed(3_000, B),
    exited(3_001, B, -9),
    revoked(9_000, A, 0, 1),
    assigned(9_010, A, 3, 0, 1, 2, 3),
    killed(10_000, "server"),
    exited(10_001, "server", -9),
    started(11_000, "server"),
    ready(11_300),
    committed(11_800, A, (2, 40), (3, 2)),
    acknowledged(11_900, "producer-1", (1, 1, "producer-1 3")),
    received(11_950, A, (1, 1, "producer-1 3")),
    committed(11_960, A, (1, 2)),
    seen(
        12_000,
        {A: (0, 1, 2, 3)},
        committed=((0, 2), (1, 2), (2, 40), (3, 2)),
        ends=((0, 2), (1, 2), (2, 40), (3, 2)),
    ),
)
