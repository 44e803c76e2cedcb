"""OffsetCommit and OffsetFetch."""

from __future__ import annotations

from integration.differential.words.admin import New, create_topics, delete_topics
from integration.differential.words.groups import (
    commit,
    describe,
    enter,
    fetch,
    leave,
    list_groups,
    pause,
    stable,
    stable_statics,
    sync,
)
from integration.differential.words.history import GROUP, NO_TOPIC, OTHER_TOPIC, TOPIC, History, Id

PLACES = ((TOPIC, 0), (TOPIC, 1), (OTHER_TOPIC, 0), (OTHER_TOPIC, 1))
LONG = "x" * 4096
OWN_TOPIC = f"{GROUP}-topic"
NO_ID = ""
"""The name of no topic; where topics are named by id, the id of zeros."""
MIXED = (
    (NO_TOPIC, 0),
    (TOPIC, 0),
    (NO_ID, 1),
    (OTHER_TOPIC, 9),
    (OWN_TOPIC, 0),
    (TOPIC, 7),
    (OTHER_TOPIC, 1),
)
"""Places of topics that exist and of some that do not, by turns."""

HISTORIES = [
    History(
        "a member's commit to a group that does not exist",
        cases=[127, 136],
        steps=[
            commit("alice", 0, id="made-up"),
            commit("alice", 1, id=""),
            commit("alice", 1, id="", group=""),
            commit("alice", 1, id="made-up", offsets={}),
            commit("alice", 1, id="made-up", offsets={(TOPIC, 0): 1, (NO_TOPIC, 0): 2, (TOPIC, 9): 3}),
            list_groups(),
        ],
    ),
    History(
        "commits with a wrong identity",
        cases=[128, 130],
        steps=[
            stable("alice"),
            commit("alice", 1, id="made-up"),
            commit("alice", 2),
            commit("alice", 0),
            commit("alice", -1, id=Id("alice")),
            commit("alice", -1, id="made-up"),
            commit("alice", 2, id="made-up"),
            commit("alice", 1, id=""),
            commit("alice", -1),
            commit("alice", 1, instance="nobody"),
            commit("alice", 1),
            fetch("alice"),
        ],
    ),
    History(
        "commits with a wrong instance",
        cases=[128],
        steps=[
            stable_statics("alice"),
            commit("alice", 1, id="made-up", instance="alice"),
            commit("alice", 1, instance="alice"),
            commit("alice", 1, instance="nobody"),
            commit("alice", 1, instance=""),
            commit("alice", -1, id="", instance="alice"),
            commit("alice", 7, instance="alice"),
            fetch("alice"),
        ],
        eras=range(7, 11),
    ),
    History(
        "commits through a rebalance",
        cases=[129],
        steps=[
            enter("alice"),
            commit("alice", 1),
            commit("alice", 2),
            commit("alice", 1, id="made-up"),
            commit("alice", -1),
            sync("alice"),
            commit("alice", 1, offsets={(TOPIC, 0): 7}),
            enter("bob", wait=False),
            pause(100),
            commit("alice", 1, offsets={(TOPIC, 0): 8}),
            commit("alice", 2, offsets={(TOPIC, 0): 9}),
            commit("alice", -1),
            commit("bob", 1, over="bob too"),
            fetch("alice"),
        ],
    ),
    History(
        "an administrator's commits",
        cases=[131, 132],
        steps=[
            commit("admin"),
            commit("admin", -1, id="made-up", offsets={(TOPIC, 0): 6}),
            commit("admin", -1, id="made-up", instance="i", offsets={(TOPIC, 0): 7}),
            commit("admin", -2, offsets={(TOPIC, 1): 8}),
            describe(),
            list_groups(),
            fetch("admin", PLACES),
            enter("alice"),
            commit("admin"),
            leave("alice"),
            commit("admin", offsets={(TOPIC, 0): 9}),
            commit("admin", 1, offsets={(TOPIC, 0): 10}),
            commit("admin", 2, id="made-up", offsets={(TOPIC, 0): 10}),
            fetch("admin", PLACES),
            describe(),
        ],
    ),
    History(
        "a commit with a retention time",
        cases=[133],
        steps=[
            commit("admin", retention_ms=1234),
            commit("admin", offsets={(TOPIC, 1): 3}, leader_epoch=4),
            commit("admin", offsets={(OTHER_TOPIC, 1): 3}, leader_epoch=4, retention_ms=60_000),
            fetch("admin", PLACES),
        ],
    ),
    History(
        "metadata that is too long",
        cases=[135],
        steps=[
            commit("admin", metadata=LONG),
            commit("admin", metadata=LONG + "x", offsets={(TOPIC, 0): 1, (OTHER_TOPIC, 1): 2}),
            commit("admin", metadata="é" * 4096, offsets={(TOPIC, 1): 1}),
            commit("admin", metadata="😀" * 2049, offsets={(OTHER_TOPIC, 0): 1}),
            commit("admin", metadata="", offsets={(OTHER_TOPIC, 0): 2}),
            commit("admin", metadata=None, offsets={(OTHER_TOPIC, 1): 2}),
            fetch("admin", PLACES),
        ],
    ),
    History(
        "metadata that is too long creates no group",
        cases=[135],
        steps=[commit("admin", metadata=LONG + "x"), describe(), list_groups()],
    ),
    History(
        "topics and partitions that do not exist",
        cases=[127, 144],
        steps=[
            commit("admin", offsets={(NO_TOPIC, 0): 1}),
            commit("admin", offsets={(NO_TOPIC, 0): 1, (TOPIC, 1): 2, (TOPIC, 9): 3, (OTHER_TOPIC, -1): 4}),
            commit("admin", offsets={}),
            commit("admin", offsets={("", 0): 1}),
            fetch("admin", ((NO_TOPIC, 0), (TOPIC, 1), (TOPIC, 9))),
            fetch("admin", None),
        ],
    ),
    History(
        "an unknown topic among others, and one that is deleted and made again",
        cases=[127, 144],
        steps=[
            create_topics("admin", New(OWN_TOPIC, 2), era=4),
            commit("admin", offsets=dict.fromkeys(MIXED, 1)),
            fetch("admin", MIXED),
            delete_topics("admin", OWN_TOPIC, era=5),
            commit("admin", offsets={(OWN_TOPIC, 0): 2}),
            commit("admin", offsets=dict.fromkeys(MIXED, 3)),
            fetch("admin", ((OWN_TOPIC, 0),)),
            fetch("admin", MIXED),
            fetch("admin", None),
            create_topics("admin", New(OWN_TOPIC, 1), era=4),
            fetch("admin", MIXED),
            commit("admin", offsets=dict.fromkeys(MIXED, 4)),
            fetch("admin", None),
        ],
    ),
    History(
        "unknown topics, asked by members, for groups that do not exist, and for several",
        cases=[127, 128, 144],
        steps=[
            fetch("admin", ((NO_TOPIC, 0),)),
            fetch("admin", MIXED),
            fetch("admin", ((NO_TOPIC, 0), (NO_ID, 0)), group=""),
            stable("alice"),
            commit("alice", 1, offsets={(NO_TOPIC, 0): 1, (NO_ID, 0): 2}),
            commit("alice", 7, offsets={(NO_TOPIC, 0): 1}),
            commit("alice", 7, offsets={(NO_TOPIC, 0): 1, (TOPIC, 0): 2}),
            commit("alice", 1, id="made-up", offsets={(NO_ID, 0): 1}),
            commit("alice", 1, offsets=dict.fromkeys(MIXED, 3)),
            fetch("alice", MIXED, require_stable=True),
            fetch("alice", ((NO_TOPIC, 0),), member=("made-up", 7)),
            fetch("alice", ((NO_TOPIC, 0), (TOPIC, 0)), member=("made-up", 7)),
            fetch(
                "alice",
                groups=[(GROUP, MIXED), (GROUP + "-not-there", MIXED), ("", ((NO_TOPIC, 0),))],
                since=8,
            ),
        ],
    ),
    History(
        "offsets of any number",
        cases=[131],
        steps=[
            commit("admin", offsets={(TOPIC, 0): -1, (TOPIC, 1): -5, (OTHER_TOPIC, 0): 2**63 - 1}),
            fetch("admin", PLACES),
            fetch("admin", None),
        ],
    ),
    History(
        "fetch from a group that does not exist",
        cases=[140],
        steps=[fetch("admin", PLACES), fetch("admin", None), fetch("admin", ()), list_groups()],
    ),
    History(
        "fetch all or some, stable or not",
        cases=[140, 141, 144],
        steps=[
            commit("admin", offsets={(TOPIC, 1): 1, (OTHER_TOPIC, 0): 2}),
            fetch("admin", PLACES),
            fetch("admin", PLACES, require_stable=True),
            fetch("admin", None),
            fetch("admin", None, require_stable=True),
            fetch("admin", ()),
            fetch("admin", ((TOPIC, 1), (TOPIC, 1))),
        ],
    ),
    History(
        "fetch for several groups",
        cases=[144],
        steps=[
            commit("admin"),
            commit("admin", group=GROUP + "-b", offsets={(OTHER_TOPIC, 1): 3}),
            fetch("admin", groups=[(GROUP, None), (GROUP + "-b", None), (GROUP + "-not-there", None)]),
            fetch("admin", groups=[(GROUP + "-not-there", PLACES), (GROUP, PLACES), (GROUP + "-b", ())]),
            fetch("admin", groups=[(GROUP, PLACES), (GROUP, None)]),
            fetch("admin", groups=[("", PLACES)]),
        ],
        eras=(8, 9, 10),
    ),
    History(
        "fetch as a member",
        cases=[140],
        steps=[
            stable("alice"),
            commit("alice", 1),
            fetch("alice", member=(None, 7)),
            fetch("alice", member=("made-up", 7)),
        ],
        eras=(9, 10),
    ),
    History(
        "the empty group id",
        cases=[136],
        steps=[
            commit("admin", group=""),
            fetch("admin", group=""),
            commit("admin", 1, id="made-up", group=""),
        ],
    ),
]
