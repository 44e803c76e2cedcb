"""Heartbeat."""

from __future__ import annotations

from integration.differential.words.groups import (
    answered,
    enter,
    heartbeat,
    join,
    leave,
    list_groups,
    pause,
    rejoin,
    stable,
    sync,
)
from integration.differential.words.history import History

HISTORIES = [
    History(
        "by a stranger",
        cases=[88],
        steps=[
            heartbeat("alice", id="made-up"),
            heartbeat("alice", id="made-up", group=""),
            heartbeat("alice", id=""),
            stable("bob"),
            heartbeat("alice", id="made-up"),
            heartbeat("alice", 7, id="made-up"),
            join("carol", since=4),
            heartbeat("carol", since=4),
            leave("bob"),
            heartbeat("bob"),
            heartbeat("bob", 2),
            list_groups(),
        ],
    ),
    History(
        "with another generation",
        cases=[90],
        steps=[
            stable("alice"),
            heartbeat("alice", 2),
            heartbeat("alice", 0),
            heartbeat("alice", -1),
            heartbeat("alice"),
        ],
    ),
    History(
        "through a rebalance",
        cases=[91, 92],
        steps=[
            enter("alice"),
            heartbeat("alice"),
            sync("alice"),
            heartbeat("alice"),
            enter("bob", wait=False),
            pause(100),
            heartbeat("alice"),
            heartbeat("alice", 2),
            rejoin("alice"),
            answered("bob"),
            heartbeat("alice"),
            heartbeat("alice", 2),
            heartbeat("bob", 2),
        ],
    ),
]
