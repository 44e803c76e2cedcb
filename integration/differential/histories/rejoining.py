"""JoinGroup of members: what starts a rebalance, and what does not."""

from __future__ import annotations

from integration.differential.words.groups import (
    answered,
    describe,
    enter,
    heartbeat,
    pause,
    rejoin,
    stable,
    subscription,
    sync,
    tolerate,
)
from integration.differential.words.history import History

HISTORIES = [
    History(
        "the leader joins again, alone",
        cases=[42, 44],
        steps=[
            stable("alice"),
            rejoin("alice"),
            describe(),
            rejoin("alice"),
            sync("alice", 2),
            heartbeat("alice", 2),
        ],
    ),
    History(
        "joining again unchanged before the sync",
        cases=[43],
        steps=[
            enter("alice", "range", "roundrobin"),
            enter("bob", "range", "roundrobin", wait=False),
            pause(100),
            rejoin("alice", "range", "roundrobin"),
            answered("bob"),
            rejoin("bob", "range", "roundrobin"),
            rejoin("alice", "range", "roundrobin"),
            describe(),
            rejoin("bob", "range", wait=False),
            pause(100),
            describe(),
            heartbeat("alice", 2),
            rejoin("alice", "range"),
            answered("bob"),
        ],
    ),
    History(
        "the leader joins again unchanged",
        cases=[44],
        steps=[
            stable("alice", "bob"),
            rejoin("alice", wait=False),
            pause(100),
            heartbeat("bob", 2),
            describe(),
            rejoin("bob"),
            answered("alice"),
        ],
    ),
    History(
        "a follower changes its protocols",
        cases=[45],
        steps=[
            stable("alice", "bob", names=("range", "roundrobin")),
            rejoin("bob", "range", wait=False),
            pause(100),
            heartbeat("alice", 2),
            rejoin("alice", "range", "roundrobin"),
            answered("bob"),
        ],
    ),
    History(
        "a follower joins again unchanged",
        cases=[46],
        steps=[
            stable("alice", "bob"),
            rejoin("bob"),
            heartbeat("alice", 2),
            sync("bob", 2),
            rejoin("bob", session_ms=20_000, rebalance_ms=20_000),
            describe(),
        ],
    ),
    *(
        History(
            f"a follower joins again with {what}",
            cases=[47],
            steps=[
                stable("alice", "bob", names=("range", "roundrobin")),
                rejoin("bob", protocols=protocols, wait=False),
                pause(150),
                heartbeat("alice", 2),
                describe(),
            ],
            eras=(3, 9),
        )
        for what, protocols in {
            "other bytes": [("range", subscription("new")), ("roundrobin", subscription("bob roundrobin"))],
            "fewer protocols": [("range", subscription("bob range"))],
            "another order": [
                ("roundrobin", subscription("bob roundrobin")),
                ("range", subscription("bob range")),
            ],
            "more protocols": [
                ("range", subscription("bob range")),
                ("roundrobin", subscription("bob roundrobin")),
                ("sticky", b""),
            ],
            "the same": [
                ("range", subscription("bob range")),
                ("roundrobin", subscription("bob roundrobin")),
            ],
        }.items()
    ),
    History(
        "the second of two joins of one member counts",
        cases=[43],
        steps=[
            stable("alice", "bob"),
            tolerate("D-older-of-two", rejoin("bob", "range", "other", wait=False)),
            pause(100),
            rejoin("bob", over="bob too", wait=False),
            pause(200, "D-older-of-two"),
            rejoin("alice"),
            answered("alice"),
            describe(),
        ],
        eras=(1, 4, 9),
    ),
]
