"""JoinGroup: creation of a group, member ids, protocols, limits."""

from __future__ import annotations

import itertools

from integration.differential.words.groups import (
    answered,
    commit,
    delete,
    describe,
    enter,
    heartbeat,
    join,
    leave,
    list_groups,
    pause,
    rejoin,
    stable,
    subscription,
    sync,
    tolerate,
)
from integration.differential.words.history import History, Id, flat

FROM_4 = range(4, 10)

HISTORIES = [
    History(
        "a made-up member id creates no group",
        cases=[1],
        steps=[join("alice", id="made-up"), describe(), list_groups()],
    ),
    History(
        "an id that is required creates the group",
        cases=[2],
        steps=[join("alice"), pause(300), list_groups(), describe(), delete(), list_groups()],
        eras=FROM_4,
    ),
    History(
        "the first member leads alone",
        cases=[4, 5, 14],
        steps=[*enter("alice"), describe(), list_groups(), heartbeat("alice")],
    ),
    History(
        "errors have no generation, protocol or members",
        cases=[6, 14],
        steps=[
            join("alice", id="made-up"),
            *enter("alice"),
            join("bob", id="made-up"),
            join("bob", "other"),
            join("bob", type="connect"),
        ],
    ),
    History(
        "another protocol type is refused",
        cases=[7],
        steps=[*enter("alice"), join("bob", type="connect"), describe()],
    ),
    History(
        "an empty protocol type is refused",
        cases=[8],
        steps=[
            join("alice", type=""),
            join("alice", instance="alice", type=""),
            join("bob"),
            rejoin("bob", type="", since=4),
            describe(),
        ],
        eras=(0, 3, *range(4, 10)),
    ),
    History(
        "no protocol at all is refused",
        cases=[9],
        steps=[join("alice", protocols=[]), *enter("alice"), join("bob", protocols=[]), describe()],
    ),
    History(
        "no protocol in common is refused",
        cases=[10],
        steps=[
            *stable("alice"),
            join("bob", "roundrobin"),
            enter("carol", "range", "roundrobin", wait=False),
            pause(200),
        ],
    ),
    History(
        "a pending id survives a refused join",
        cases=[11],
        steps=[
            *enter("alice", wait=False),
            answered("alice"),
            join("bob"),
            rejoin("bob", protocols=[]),
            rejoin("bob", "other"),
            heartbeat("bob"),
            rejoin("bob", wait=False),
            pause(100),
            rejoin("alice"),
            answered("bob"),
            describe(),
        ],
        eras=FROM_4,
    ),
    History(
        "an unknown id is refused by a group that exists",
        cases=[12],
        steps=[*stable("alice"), join("bob", id="made-up"), heartbeat("alice"), describe()],
    ),
    History(
        "a pending id with an instance id is refused",
        cases=[15],
        steps=[
            join("alice"),
            rejoin("alice", instance="alice"),
            describe(),
            rejoin("alice"),
        ],
        eras=range(5, 10),
    ),
    History(
        "an empty group knows no member",
        cases=[16],
        steps=[*stable("alice"), leave("alice"), rejoin("alice"), describe(), *enter("alice"), describe()],
    ),
    History(
        "an empty group id is refused",
        cases=[17],
        steps=[join("alice", group=""), join("alice", group="", id="made-up"), describe()],
    ),
    History(
        "the session timeout has bounds",
        cases=[18],
        steps=[
            join("alice", session_ms=299),
            join("alice", session_ms=1_800_001),
            join("alice", session_ms=-1),
            join("alice", session_ms=299, id="made-up", group=""),
            join("alice", session_ms=299, id="made-up"),
            list_groups(),
            join("alice", session_ms=1_800_000),
            join("bob", session_ms=300, since=4),
            describe(),
        ],
    ),
    History(
        "a full group refuses newcomers",
        cases=[19, 21],
        steps=[
            *stable("alice", "bob"),
            join("carol"),
            join("carol", instance="carol"),
            heartbeat("alice", 2),
            describe(),
            leave("bob"),
            rejoin("alice"),
            *enter("carol", wait=False),
            pause(100),
            rejoin("alice"),
            answered("carol"),
        ],
        pair="small",
    ),
    History(
        "an id that was handed out does not hold a place",
        cases=[20],
        steps=[
            join("alice"),
            join("bob"),
            join("carol"),
            rejoin("alice"),
            rejoin("bob", wait=False),
            pause(150),
            rejoin("carol", wait=False),
            pause(150),
            describe(),
        ],
        eras=FROM_4,
        pair="small",
    ),
    History(
        "a full group lets its own members join again",
        cases=[20, 23],
        steps=[
            *stable("alice", "bob"),
            rejoin("alice", wait=False),
            pause(100),
            rejoin("bob", wait=False),
            answered("alice", "bob"),
            rejoin("bob"),
            sync("bob", 3, wait=False),
            sync("alice", 3, assign={"alice": b"a", "bob": b"b"}),
            answered("bob"),
            rejoin("bob"),
            describe(),
        ],
        pair="small",
    ),
    History(
        "a third static member is refused",
        cases=[22],
        steps=[
            join("alice", instance="alice"),
            join("bob", instance="bob", wait=False),
            pause(100),
            rejoin("alice", instance="alice"),
            answered("bob"),
            join("carol", instance="carol"),
            describe(),
        ],
        eras=range(5, 10),
        pair="small",
    ),
    History(
        "most votes choose the protocol",
        cases=[107],
        steps=[
            *enter("alice", "range", "roundrobin", "sticky"),
            *flat(enter(name, "sticky", "roundrobin", wait=False) for name in ("bob", "carol")),
            pause(100),
            rejoin("alice", "range", "roundrobin", "sticky"),
            answered("bob", "carol"),
            describe(),
        ],
    ),
    *(
        History(
            f"a tie in the vote, {first} before {second}",
            cases=[107],
            steps=[
                *enter("alice", first, second),
                *enter("bob", second, first, wait=False),
                pause(100),
                rejoin("alice", first, second),
                answered("bob"),
                describe(),
            ],
            eras=[6],
        )
        for first, second in itertools.permutations(("range", "sticky", "roundrobin"), 2)
    ),
    History(
        "only common protocols are eligible",
        cases=[107, 108],
        steps=[
            *enter("alice", "range", "roundrobin"),
            *enter("bob", "sticky", "roundrobin", wait=False),
            pause(100),
            join("carol", "range"),
            rejoin("alice", "range", "roundrobin"),
            answered("bob"),
            join("dave", "sticky"),
            describe(),
        ],
    ),
    History(
        "a lone member cannot change all its protocols",
        cases=[108],
        steps=[
            *stable("alice"),
            rejoin("alice", "roundrobin"),
            heartbeat("alice"),
            rejoin("alice", "roundrobin", "range"),
        ],
    ),
    History(
        "commits of an administrator and then members",
        cases=[4, 131],
        steps=[commit("admin"), list_groups(), *enter("alice"), describe(), list_groups()],
        eras=(2, 3, 4, 9, 10),
    ),
    *(
        History(
            f"the metadata of a consumer is {what}",
            cases=[114],
            steps=[
                join("alice", protocols=[("range", data)], since=4),
                rejoin("alice", protocols=[("range", data)]),
            ],
            eras=(4, 9),
        )
        for what, data in (
            ("empty", b""),
            ("cut", subscription("alice")[:9]),
            ("text", b"this is no subscription"),
            ("of version -1", b"\xff\xff"),
        )
    ),
    History(
        "one protocol twice",
        cases=[107],
        steps=[
            join("alice"),
            tolerate(
                "D-one-protocol-twice",
                rejoin(
                    "alice",
                    protocols=[("range", subscription("a")), ("range", subscription("b"))],
                    wait=False,
                ),
            ),
            pause(200, "D-one-protocol-twice"),
        ],
        eras=(4, 9),
    ),
    History(
        "names that are empty, much metadata",
        cases=[9, 47],
        steps=[
            join("alice", protocols=[("", b"")], since=4),
            *enter("bob", protocols=[("range", subscription("x" * 100_000)), ("", subscription("y"))]),
            describe(),
        ],
        eras=FROM_4,
    ),
    History(
        "reasons are taken",
        cases=[5],
        steps=[
            join("alice", reason="because"),
            rejoin("alice", reason=""),
            leave("alice", reason="enough"),
            describe(),
        ],
        eras=(8, 9),
    ),
    History(
        "someone else's id",
        cases=[5, 12],
        steps=[
            *stable("alice"),
            join("bob", id=Id("alice"), wait=False),
            pause(200),
            describe(),
        ],
    ),
]
