"""A good run of the demo: the events of its workers, the looks at its group, and short names for both."""

from __future__ import annotations

from kshim.demo.scene import Look, Scene, Step
from kshim.testing.rebalances import Rebalance

A, B, C = "consumer-1", "consumer-2", "consumer-3"
P = "producer-1"
X, Y, Z = (0, 0, "producer-1 0"), (0, 1, "producer-1 1"), (1, 0, "producer-2 0")


def event(kind, at_ms, name, **fields):
    return {"event": kind, "at_ms": at_ms, "name": name, **fields}


def started(at_ms, name):
    return event("started", at_ms, name)


def assigned(at_ms, name, generation, *partitions):
    return event("assigned", at_ms, name, generation=generation, partitions=list(partitions))


def revoked(at_ms, name):
    return event("revoked", at_ms, name)


def received(at_ms, name, *records):
    return event("received", at_ms, name, records=[list(record) for record in records])


def acknowledged(at_ms, name, *records):
    return event("acknowledged", at_ms, name, records=[list(record) for record in records])


def committed(at_ms, name, *offsets):
    return event("committed", at_ms, name, offsets=[list(offset) for offset in offsets])


def ended(at_ms, name, status=0, said=""):
    return event("ended", at_ms, name, status=status, said=said)


def look(at_ms, members=None, state="Stable", committed=None, ends=None):
    return Look(at_ms, state, members or {}, committed or {}, ends or {})


def rebalance(generation, *story):
    return Rebalance("demo-group", generation, "", (), "", "", 0, True, (), (), story)


def scene_of(*items):
    """A scene in its first step, after these events and looks, and in the state that follows from them."""
    scene = Scene(began_ms=0, server="ready", address="127.0.0.1:9092", steps=[Step("it begins", 0)])
    add(scene, *items)
    return scene


def add(scene, *items):
    for item in items:
        if isinstance(item, Look):
            scene.looks.append(item)
        else:
            scene.apply(item)


RUN = (
    started(0, P),
    acknowledged(100, P, X, Y),
    started(200, A),
    started(200, B),
    assigned(300, A, 1, 0, 1, 2, 3, 4, 5),
    revoked(400, A),
    assigned(500, A, 2, 0, 1, 2),
    assigned(500, B, 2, 3, 4, 5),
    received(600, A, X, Y),
    committed(650, A, (0, 2)),
    acknowledged(700, P, Z),
    received(750, A, Z),
    received(750, B, (3, 0, "unacknowledged")),
    committed(800, A, (1, 1)),
    committed(800, B, (3, 1)),
    look(900, {A: (0, 1, 2), B: (3, 4, 5)}, committed={0: 2, 1: 1, 3: 1}, ends={0: 2, 1: 1, 3: 1}),
)
