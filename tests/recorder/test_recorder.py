"""The recorder's memory: how much it keeps, in which order it forgets, and its listeners."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from sys import getsizeof

import pytest

from kshim.coordination.groups.rebalance_record import Part, Rebalance, RebalanceBegan, Who
from kshim.coordination.groups.trigger import Gone, Trigger
from kshim.recorder.naming import short_names
from kshim.recorder.recorder import MOST_EVENT_BYTES, MOST_EVENTS, Event, Recorder
from kshim.recorder.scores import WINDOW_MS, scores


def rebalance(
    group_id: str = "g", generation: int = 1, parts: Sequence[Part] = (), began_ms: int = 0
) -> Rebalance:
    it = Rebalance(group_id, Trigger.MEMBER_JOINED, (), "", "", began_ms, generation=generation)
    it.ended_ms = began_ms + 100
    it.parts = {part.who.member_id: part for part in parts}
    return it


def kept(recorder: Recorder, group_id: str = "g") -> list[int]:
    return [each.generation for each in recorder.rebalances(group_id)]


def test_a_group_keeps_its_last_rebalances() -> None:
    recorder = Recorder(lambda: 0, most_of_a_group=2)
    for generation in (1, 2, 3):
        recorder.add(rebalance(generation=generation))
    assert kept(recorder) == [2, 3]
    assert recorder.bytes == 2 * rebalance().size


def test_the_oldest_of_all_go_first() -> None:
    recorder = Recorder(lambda: 0, most_bytes=3 * rebalance().size)
    for group_id, generation in (("a", 1), ("b", 1), ("a", 2), ("b", 2)):
        recorder.add(rebalance(group_id, generation))
    assert (kept(recorder, "a"), kept(recorder, "b")) == ([2], [1, 2])
    recorder.add(rebalance("c", 1))
    recorder.add(rebalance("c", 2))
    assert (kept(recorder, "a"), kept(recorder, "b"), kept(recorder, "c")) == ([], [2], [1, 2])
    assert not recorder.rebalances("a")
    assert recorder.rebalances("b")
    assert recorder.rebalances("c")


def test_what_groups_forgot_takes_no_room() -> None:
    recorder = Recorder(lambda: 0, most_of_a_group=1)
    for generation in range(1_000):
        recorder.add(rebalance(generation=generation))
    assert len(recorder._by_age) <= 3
    assert recorder.bytes == rebalance().size


def test_nothing_is_kept_without_memory() -> None:
    recorder = Recorder(lambda: 0, most_bytes=0)
    recorder.add(rebalance())
    assert (kept(recorder), recorder.bytes) == ([], 0)


def deep_bytes(value: object, seen: set[int]) -> int:
    """The bytes of a value with all that it refers to, each object once."""
    if id(value) in seen or isinstance(value, (type, Enum)):
        return 0
    seen.add(id(value))
    total = getsizeof(value)
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, (tuple, list)):
        inner = list(value)
    else:
        inner = [getattr(value, name) for name in getattr(type(value), "__slots__", ())]
    return total + sum(deep_bytes(each, seen) for each in inner)


@pytest.mark.parametrize("length", [10, 1_000, 30_000])
@pytest.mark.parametrize("character", ["a", "ü", "語", "😀"])
@pytest.mark.parametrize("members", [1, 100])
def test_all_that_a_rebalance_keeps_counts(length: int, character: str, members: int) -> None:
    def text(number: int) -> str:
        return str(number) + character * length

    parts = [
        Part(
            Who(text(n), text(n + 1), f"/127.0.0.{n}", text(n + 2)),
            before=text(n).encode(),
            after=text(n + 1).encode(),
            subscription=text(n + 2).encode(),
            offers=text(n + 3).encode(),
            joined_ms=1_000_000 + n,
            assigned_ms=2_000_000 + n,
        )
        for n in range(members)
    ]
    it = rebalance(text(7), parts=parts)
    it.members = tuple(Who(text(n), text(n + 1)) for n in range(members))
    it.votes = {text(n): n for n in range(members)}
    it.reason, it.detail, it.leader, it.protocol = text(1), text(2), text(3), text(4)
    takes = deep_bytes(it, set())
    assert 0.95 * takes < it.size < 1.5 * takes + 500


def test_events_are_numbered_and_bounded() -> None:
    recorder = Recorder(lambda: 7)
    for generation in range(MOST_EVENTS + 2):
        recorder.add(rebalance(generation=generation))
    found = recorder.events_after(0)
    assert (len(found), found[0].number, found[-1].number) == (MOST_EVENTS, 3, MOST_EVENTS + 2)
    assert [event.number for event in recorder.events_after(MOST_EVENTS)] == [
        MOST_EVENTS + 1,
        MOST_EVENTS + 2,
    ]
    assert recorder.events_after(MOST_EVENTS + 2) == recorder.events_after(10**9) == []
    assert (found[0].at_ms, found[0].kind, found[0].group_id) == (7, "rebalance", "g")


def test_an_event_is_not_longer_than_a_line() -> None:
    recorder = Recorder(lambda: 0)
    recorder.add(rebalance("g" * 32_767))
    assert len(recorder.events_after(0)[0].text) == 1_000


def test_watchers_are_told_until_they_end_it() -> None:
    recorder, seen = Recorder(lambda: 0), list[Event]()
    unwatch = recorder.watch(seen.append)
    recorder.add("something")
    unwatch()
    recorder.add("something else")
    assert [(event.kind, event.text) for event in seen] == [("other", "something")]


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ([Who("a-1234567890", "a")], ["a"]),
        ([Who("a-1234567890", "a"), Who("a-abcdefghij", "a")], ["a-12345678", "a-abcdefgh"]),
        ([Who("a-1234567890", "a"), Who("a-1234567891", "a")], ["a-1234567890", "a-1234567891"]),
        ([Who("i-1234567890", "a", "", "i"), Who("a-1234567891", "a")], ["i", "a"]),
        ([Who("-1234567890")], ["-1234567"]),
    ],
)
def test_members_have_the_shortest_name_that_is_their_own(members: list[Who], names: list[str]) -> None:
    assert list(short_names(members).values()) == names


def test_scores() -> None:
    def part(name: str, joined_ms: int = -1, gone: Gone | None = None, heard_ms: int = -1) -> Part:
        who = Who(f"{name}-1", name, "/10.0.0.1")
        return Part(who, notified_ms=heard_ms, joined_ms=joined_ms, gone=gone)

    now_ms = 10 * WINDOW_MS
    old = rebalance(
        parts=[part("a", 5, heard_ms=0), part("b", 40, heard_ms=38), part("z", gone=Gone.EXPIRED)]
    )
    new = rebalance(
        parts=[
            part("a", now_ms - 60, heard_ms=now_ms - 100),
            part("b", now_ms - 5, heard_ms=now_ms - 6),  # its heartbeat was not due before
            part("z", gone=Gone.EXPIRED),
        ],
        began_ms=now_ms - 100,
    )
    assert scores([old, new], now_ms) == {
        "rebalances": 1,
        "rebalancing": round(100 / WINDOW_MS, 4),
        "slowest": "a at 10.0.0.1",
        "slowest_ms": 45,
        "zombies": {"z at 10.0.0.1": 2},
    }
    assert scores([], now_ms)["slowest"] is None


def test_the_texts_of_events_count() -> None:
    """A client chooses how long the id of a group is."""
    recorder = Recorder(lambda: 0)
    for n in range(1_000):
        recorder.add(RebalanceBegan(f"{n}-".ljust(32_000, "g"), Trigger.MEMBER_JOINED, ()))
    assert recorder.event_bytes <= MOST_EVENT_BYTES
    found = recorder.events_after(0)
    assert (len(found), found[-1].number) == (MOST_EVENT_BYTES // found[0].size, 1_000)
    assert recorder.event_bytes == sum(event.size for event in found)
