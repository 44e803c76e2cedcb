"""LeaveGroup: alone, in batches, by administrators."""

from __future__ import annotations

from integration.differential.words.groups import (
    answered,
    describe,
    enter,
    heartbeat,
    join,
    leave,
    list_groups,
    pause,
    rejoin,
    stable,
    stable_statics,
    sync,
    tolerate,
)
from integration.differential.words.history import History, Id

FROM_3 = range(3, 10)
FROM_5 = range(5, 10)
COMPLETING = (
    enter("alice"),
    enter("bob", wait=False),
    pause(100),
    rejoin("alice"),
    answered("bob"),
)

HISTORIES = [
    History(
        "a group that does not exist",
        cases=[96],
        steps=[
            leave("alice", ("made-up", None)),
            leave("alice", ("", None)),
            leave("alice", ("a", None), ("b", "instance"), ("", "instance")),
            list_groups(),
        ],
    ),
    History(
        "an unknown member",
        cases=[97],
        steps=[
            stable("alice"),
            leave("alice", ("made-up", None)),
            leave("alice", ("", None)),
            leave("alice", ("", "nobody")),
            heartbeat("alice"),
        ],
    ),
    History(
        "the last member",
        cases=[99],
        steps=[
            stable("alice"),
            leave("alice"),
            describe(),
            list_groups(),
            heartbeat("alice"),
            leave("alice"),
        ],
    ),
    History(
        "an instance id with a wrong member id",
        cases=[100],
        steps=[
            stable_statics("alice", "bob"),
            leave("admin", ("made-up", "alice"), (Id("bob"), "bob")),
            leave("admin", (Id("alice"), "bob")),
            describe(),
        ],
        eras=FROM_5,
    ),
    History(
        "an administrator removes a static member",
        cases=[101],
        steps=[
            stable_statics("alice", "bob"),
            leave("admin", ("", "bob"), reason="maintenance"),
            heartbeat("alice", 2, instance="alice"),
            heartbeat("bob", 2, instance="bob"),
            describe(),
        ],
        eras=FROM_5,
    ),
    History(
        "static members in one request",
        cases=[102],
        steps=[
            leave("admin", ("", "alice"), ("", "bob")),
            stable_statics("alice", "bob"),
            leave("admin", ("", "alice"), ("", "nobody"), ("", "bob"), ("", "alice")),
            describe(),
        ],
        eras=FROM_5,
    ),
    History(
        "nobody at all",
        cases=[102],
        steps=[stable("alice"), leave("admin", ("", None)), heartbeat("alice"), describe()],
    ),
    History(
        "a pending id that blocks the join phase",
        cases=[103],
        steps=[
            stable("alice", "bob"),
            join("carol"),
            rejoin("alice", wait=False),
            rejoin("bob", wait=False),
            pause(200),
            leave("carol"),
            answered("alice", "bob"),
            rejoin("carol"),
            describe(),
        ],
        eras=range(4, 10),
    ),
    History(
        "a pending id of a stable group",
        cases=[103],
        steps=[
            stable("alice"),
            join("bob"),
            leave("bob"),
            tolerate("D-pending-id-leaves", heartbeat("alice")),
        ],
        eras=range(4, 10),
    ),
    History(
        "members, pending ids and strangers in one request",
        cases=[104],
        steps=[
            stable("alice", "bob"),
            join("carol"),
            leave("admin", (Id("carol"), None), ("made-up", None), (Id("bob"), None), (Id("bob"), None)),
            heartbeat("alice", 2),
            rejoin("alice"),
            describe(),
        ],
        eras=range(4, 10),
    ),
    History(
        "an empty group id",
        cases=[105],
        steps=[leave("alice", ("x", None), group=""), describe()],
    ),
    History(
        "the leader leaves, and the follower leads",
        cases=[99],
        steps=[
            stable("alice", "bob"),
            leave("alice"),
            describe(),
            heartbeat("bob", 2),
            rejoin("bob"),
            sync("bob", 3, assign={"bob": b"all"}),
            describe(),
        ],
    ),
    History(
        "the follower leaves before the sync",
        cases=[99],
        steps=[
            *COMPLETING,
            leave("bob"),
            heartbeat("alice", 2),
            sync("alice", 2),
            rejoin("alice"),
            describe(),
        ],
    ),
    History(
        "a member leaves while its join is parked",
        cases=[99],
        steps=[
            stable("alice"),
            enter("bob", wait=False),
            pause(100),
            leave("bob", over="bob too"),
            answered("bob"),
            heartbeat("alice"),
            rejoin("alice"),
            describe(),
        ],
    ),
]
