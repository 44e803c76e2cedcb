"""The cases that a group coordinator must get right, and the tests that try them.

python -m tests.coordination.groups.cases          every case with its tests; exit status 1 if one has none
python -m tests.coordination.groups.cases --run    runs them all; --run 53 64 those of these cases

They are what Apache Kafka's own tests of its coordinators check, in our words. A test's docstring names the
cases that it tries, as [n].
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
_NUMBER = re.compile(r"\[(\d+)\]")

_TITLES = """
Joining: creation, ids, protocols, limits
1 A made-up member id creates no group
2 The creation of a group is durable with the first id that is handed out
3 A creation that cannot be written is told to who waits
4 Before v4 a member is admitted at once, and leads
5 From v4 on a member joins once more with the id it was given
6 What an error says of the protocol, by version
7 Another protocol type than the group's
8 No protocol type
9 No protocols
10 No protocol in common with the members
11 An id that was handed out survives a join that is refused
12 An unknown id in a group with members
13 Joining a dead group
14 The protocol type in answers and in errors
15 An id that was handed out, used with an instance id
16 A member of a group that counts as empty
17 No group id
18 The bounds of the session timeout
19 A full group takes nobody new
20 Ids beyond the limit are handed out, and dropped when they are used
21 The limit where members are admitted at once
22 The limit for static members
23 Members of a full group join again
24 Those that join last when the limit was lowered
25 A group that is too large when it is loaded

The join phase
26 The initial delay is waited for
27 A newcomer prolongs the initial delay
28 The initial delay ends with the rebalance timeout
29 A member that does not join again is left out
30 Nobody joins again: the phase goes on for static members
31 A group that died during the delay
32 An id that was handed out joins, and all is complete
33 An id that was handed out is never used, and all is complete
34 An id that is never used does not disturb a stable group
35 A new member's join is not held for ever
36 After its first generation a new member lives by its session
37 A newcomer dies after the join phase
38 A newcomer dies after the sync phase
39 A static member that only sends heartbeats during a rebalance
40 A rebalance that waits for a silent static member
41 Sessions of members and of ids that were handed out
42 Each rebalance is a new generation

Joining again
43 While assignments are awaited: the same subscription, and another
44 The leader of a stable group joins again
45 A follower of a stable group with another subscription
46 A follower of a stable group with the same subscription
47 When two subscriptions are the same

Static members
48 The first static member; an instance id with an id made up
49 A static member's parked join is fenced by its successor
50 A new id each time it comes back
51 It comes back to a stable group unnoticed
52 It comes back with a subscription that changes the protocol
53 Its return cannot be written
54 It comes back while assignments are awaited
55 A duplicate fences a follower that joins
56 A duplicate fences a follower that syncs
57 A member that was replaced joins again
58 It joins again under its id while assignments are awaited
59 The leader comes back without its id, by version
60 The leader comes back with its id
61 The leader comes back to a dead and to an empty group
62 A follower comes back with its id and other protocols
63 A follower comes back without its id, and another protocol is chosen
64 It comes back with other protocols of which the same is chosen
65 A follower changes its protocols in a rebalance that the leader began
66 A follower comes back without its id and keeps its assignment
67 A follower comes back with its id and nothing changes
68 An id with another member's instance id
69 An instance id with another id, in SyncGroup and Heartbeat
70 A known id with an unknown instance id
71 A static follower that misses the join phase stays
72 A static leader that misses the join phase no longer leads, and stays

The sync phase
73 An unknown group and an unknown member
74 Another generation; the member is checked first
75 Another protocol type or name than the group's
76 Neither, or the group's
77 A follower after the leader
78 A follower before the leader
79 A leader that assigns nothing
80 Assignments that cannot be written
81 The leader dies while a follower waits
82 Nobody syncs
83 Followers do not sync
84 The leader does not sync
85 Everybody has synced in time
86 Protocol type and name, by version
87 How an error of the journal is answered

Heartbeats
88 An unknown group, an empty one, an unknown member
89 A heartbeat to a dead group
90 Another generation
91 During the join phase
92 During the sync phase, and in a stable group
93 Heartbeats keep a session, silence ends it
94 A session ends during a rebalance
95 While the shard is loading

Leaving
96 An unknown group, by version
97 An unknown member
98 Leaving a dead group
99 The last member leaves
100 An instance id with another id; the others leave
101 An instance id alone
102 Many static members at once
103 Ids that were handed out leave
104 Members and ids that were handed out at once, in their order
105 No group id; and what remains of a group

Groups, their description, listing, deletion; shards
106 No state follows another that it may not
107 How the protocol is chosen
108 Which protocols a group accepts
109 What a new generation begins with
110 Who leads when the leader has not joined
111 What a static member's successor takes over
112 Ids that were handed out are never members
113 Members that still have to sync are of this generation
114 What topics a group subscribes to
115 When a member counts as waiting; how it votes
116 Groups described: stable, rebalancing, unknown
117 Groups described: no group id, and while loading
118 The filters of a listing
119 Listing where a shard was lost or is loading
120 Only an empty group goes
121 Deleting many groups: each on its own
122 A group's record is the group
123 After a load each member has a session
124 Parked requests when a shard is given up
125 The shard of a group; the topic of the shards
126 Every API where there is no coordinator

Offsets
127 A generation of an unknown group, by version
128 Dead group, unknown member and instance, fenced instance, other generation
129 A commit while assignments are awaited
130 A commit without an identity in a group with members
131 A commit without a generation in a group without members
132 An administrator's commit when the members have left
133 A retention time of the commit's own
134 A commit counts as a heartbeat
135 Metadata that is too long
136 The group with the empty id; a member without an id
137 A transaction's commit without an identity
138 Who may commit in a transaction
139 A transaction that is not verified
140 Fetching of an unknown and of a dead group
141 A fetch sees only durable commits
142 What a stable fetch and another see of a transaction
143 The same for a fetch of all offsets
144 What does not exist, many groups, all topics, no topics
145 A stable fetch that fails
146 Deleting offsets: subscribed, missing, pending
147 The groups whose offsets may be deleted
148 A deleted group's offsets, pending ones included
149 When an offset has expired
150 What an expiry leaves alone
151 One run of an expiry, and the next
152 Expiry of simple, empty and living groups
153 The later of two commits in the log wins
154 Markers end only that producer's transaction
155 A deletion takes what is pending with it
156 Offsets of a topic that is gone

Records and loading
157 The record of a group, and of an empty one
158 The record of an offset, with a time to expire and without; tombstones
159 Unknown kinds of records and corrupt ones are told apart
160 Values of later versions, and times that early ones lack
161 Loading past unknown records, and not past corrupt ones
162 Offsets without a group, groups without offsets, tombstones
163 Loaded transactions are as they were
164 A member whose subscription cannot be read
165 Leaders from before the present one
166 Every API while its shard is loading, and others meanwhile
"""


def _parse(titles: str) -> Iterator[tuple[int, str]]:
    for line in titles.splitlines():
        number, _, title = line.partition(" ")
        if number.isdigit():
            yield int(number), title


CASES: dict[int, str] = dict(_parse(_TITLES))
"""The cases by their numbers."""


def carriers(tests: Path = TESTS) -> dict[int, list[str]]:
    """The tests of each case, as pytest names them. A class's docstring counts for all its tests."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py")):
        name = path.relative_to(tests.parent).as_posix()
        for node_id, numbers in _numbered(ast.parse(path.read_text()), name):
            for number in numbers:
                found[number].append(node_id)
    return dict(found)


def _numbered(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, list[int]]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _numbered(node, f"{name}::{node.name}")
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.lower().startswith("test"):
            numbers = _NUMBER.findall(ast.get_docstring(node) or "")
            yield f"{name}::{node.name}", [*dict.fromkeys(map(int, numbers))]


def missing(found: Mapping[int, Sequence[str]]) -> list[int]:
    """The cases that no test tries."""
    return [number for number in CASES if not found.get(number)]


def unknown(found: Mapping[int, Sequence[str]]) -> list[int]:
    """The numbers that tests name and that no case has."""
    return sorted(found.keys() - CASES.keys())


def table(found: Mapping[int, Sequence[str]], numbers: Iterable[int]) -> Iterator[str]:
    """A table of these cases and their tests, as lines."""
    for number in numbers:
        yield f"{number:4} {CASES[number]}"
        yield from (f"       {node_id}" for node_id in found.get(number, ("NO TEST",)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.coordination.groups.cases")
    parser.add_argument("cases", nargs="*", type=int, help="only these cases, by number")
    parser.add_argument("--run", action="store_true", help="also run their tests")
    options = parser.parse_args(arguments)
    if wrong := [number for number in options.cases if number not in CASES]:
        parser.error(f"there is no case {wrong[0]}: they are {min(CASES)} to {max(CASES)}")
    found, wanted = carriers(), options.cases or CASES
    print(*table(found, wanted), sep="\n")
    print(f"\n{len(CASES) - len(missing(found))} of {len(CASES)} cases have a test")
    for number in unknown(found):
        print(f"{', '.join(found[number])}: there is no case {number}")
    node_ids = dict.fromkeys(node_id for number in wanted for node_id in found.get(number, ()))
    failed = options.run and pytest.main(["-q", *node_ids])
    return 1 if missing(found) or unknown(found) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
