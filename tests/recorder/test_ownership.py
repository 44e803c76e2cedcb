"""Rebalances and partitions: which moved, how long nobody had them, and which members stood still."""

from __future__ import annotations

import pytest

from kshim.recorder.ownership import Ownership
from tests.coordination.groups.history import SESSION_MS, Client, History
from tests.recorder.groups import all_join, all_sync, assignment, consumer, owns, rebalance

Seen = list[tuple[int, str | None, str, int | None]]


@pytest.fixture
def history() -> History:
    return History(group_initial_rebalance_delay_ms=0)


def moved(history: History, at: int = -1) -> Seen:
    """The moves of the last rebalance: partition, from, to, ms without an owner."""
    ownership = Ownership()
    effects = [ownership.take(each) for each in history.rebalances]
    return [
        (each.partition[1], each.before and each.before.client_id, each.after.client_id, each.unowned_ms)
        for each in effects[at].moved
    ]


def paused(history: History) -> dict[str, int]:
    ownership = Ownership()
    effects = [ownership.take(each) for each in history.rebalances]
    return {member_id.split("-")[0]: ms for member_id, ms in effects[-1].paused_ms.items()}


@pytest.fixture
def pair(history: History) -> tuple[Client, Client]:
    """`a` leads and has partitions 0 and 1, `b` has 2 and 3."""
    a, b = consumer(history, "a"), consumer(history, "b")
    rebalance(history, {a: (0, 1)})
    b.enter()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    return a, b


def test_the_first_assignment_comes_from_nobody(history: History) -> None:
    rebalance(history, {consumer(history, "a"): (0, 1)})
    assert moved(history) == [(0, None, "a", None), (1, None, "a", None)]


def test_eager_members_own_nothing_from_their_join_to_their_assignment(
    history: History, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    c = consumer(history, "c")
    c.enter()
    history.sleep(100)
    a.join()
    history.sleep(200)
    all_join(history, b)
    history.sleep(30)
    all_sync({a: (0, 1), b: (2,), c: (3,)})
    assert moved(history) == [(3, "b", "c", 30)]
    assert paused(history) == {"a": 230, "b": 30, "c": 330}


def test_cooperative_members_own_until_their_assignment_lacks_it(
    history: History, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    owns(a, 0, 1)
    owns(b, 2, 3)
    c = consumer(history, "c")
    c.enter()
    all_join(history, a, b)
    history.sleep(10)
    all_sync({a: (0, 1), b: (2,), c: ()})
    history.sleep(40)
    owns(b, 2)
    b.join()
    assert moved(history) == []
    all_join(history, a, c)
    history.sleep(5)
    all_sync({a: (0, 1), b: (2,), c: (3,)})
    assert moved(history) == [(3, "b", "c", 45)]
    assert paused(history) == {"c": 5}


def test_who_leaves_gives_its_partitions_up_then(history: History, pair: tuple[Client, Client]) -> None:
    a, b = pair
    owns(a, 0, 1)
    b.leave()
    history.sleep(70)
    rebalance(history, {a: (0, 1, 2, 3)})
    assert moved(history) == [(2, "b", "a", 70), (3, "b", "a", 70)]
    assert paused(history) == {}


def test_who_dies_has_given_its_partitions_up_with_its_last_sign_of_life(
    history: History, pair: tuple[Client, Client]
) -> None:
    a, _ = pair
    history.sleep(SESSION_MS - 1)
    a.heartbeat()
    history.sleep(1)
    rebalance(history, {a: (0, 1, 2, 3)})
    assert moved(history) == [(2, "b", "a", SESSION_MS), (3, "b", "a", SESSION_MS)]


def test_a_partition_that_nobody_gets_is_without_an_owner(
    history: History, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    b.leave()
    rebalance(history, {a: (0, 1, 2)})
    rebalance(history, {a: (0, 1, 2)})
    ownership = Ownership()
    without = [ownership.take(each).without_owner for each in history.rebalances]
    assert without == [(), (), (("t", 3),), ()], "it is told once"


def test_a_rebalance_that_gives_way_moves_nothing(history: History, pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.join()
    all_join(history, a, b)
    history.sleep(50)
    b.leave()
    assert moved(history) == []
    history.sleep(50)
    rebalance(history, {a: (0, 1, 2, 3)})
    assert moved(history) == [(2, "b", "a", 100), (3, "b", "a", 100)]


def test_a_static_member_keeps_its_partitions_under_a_new_id(history: History) -> None:
    a = consumer(history, "a", group_instance_id="i")
    rebalance(history, {a: (0, 1)})
    a.member_id = ""
    a.join()
    a.join()
    rebalance(history, {a: (0, 1)})
    assert moved(history) == []


def test_what_cannot_be_decoded_counts_as_nothing(history: History) -> None:
    a = consumer(history, "a")
    all_join(history, a)
    a.sync({a: b"\xff\xff"})
    a.join()
    all_join(history, a)
    a.sync({a: assignment(1)})
    assert moved(history) == [(1, None, "a", None)]


def test_other_protocols_have_no_partitions(history: History) -> None:
    worker = history.client(protocol_type="connect")
    all_join(history, worker)
    worker.sync({worker: b"anything"})
    assert moved(history) == []
