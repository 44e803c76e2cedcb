"""The story of a rebalance, as people read it."""

from __future__ import annotations

import time

import pytest

from kshim.cli.timeline import LEGEND, timeline
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.steering_requests import ExpireMember
from kshim.recorder.naming import short_names
from kshim.recorder.shown import shown_in_turn
from kshim.recorder.story import listed, partitions, seconds
from tests.coordination.groups.history import REBALANCE_MS, SESSION_MS, History
from tests.recorder.groups import all_join, all_sync, consumer, rebalance


@pytest.fixture
def history() -> History:
    return History(group_initial_rebalance_delay_ms=0)


def test_partitions_that_no_sentence_names_are_not_formatted() -> None:
    class Shy(str):
        def __format__(self, how: str) -> str:
            raise AssertionError("formatted")

    named = [("t", n) for n in range(5)] + [(Shy("t"), n) for n in range(20)]
    assert partitions(named) == "t-0, t-1, t-2, t-3 and 21 others"
    assert partitions(named[:5]) == "t-0, t-1, t-2, t-3 and t-4"


def story(history: History) -> list[str]:
    sentences: list[str] = list(shown_in_turn(history.rebalances))[-1]["story"]
    return sentences


def test_the_first_member(history: History) -> None:
    rebalance(history, {consumer(history, "a"): (0, 1)})
    assert story(history) == [
        "The group rebalanced because a member joined: a (client at 127.0.0.1).",
        "One member joined, a.",
        "It took 0.005 s until all had their assignments.",
    ]


def test_a_new_group_that_waits_for_others() -> None:
    history = History()
    client = consumer(history, "a")
    client.enter()
    history.sleep(10_000)
    all_sync({client: (0,)})
    assert story(history)[2] == (
        "The new group waited 3.000 s more for others (group.initial.rebalance.delay.ms=3000)."
    )


def test_a_new_group_that_does_not_wait_for_others(history: History) -> None:
    """The timer of its join phase is late, and no setting is to blame."""
    client = consumer(history, "a")
    client.enter()
    history.now_ms += 200
    history.sleep(0)
    all_sync({client: (0,)})
    assert story(history)[2] == "The join phase ended 0.200 s later, as the server was busy."


def test_an_administrator_ends_a_session(history: History) -> None:
    a, b = consumer(history, "a"), consumer(history, "b")
    rebalance(history, {a: (0,)})
    rebalance(history, {b: (1,), a: (0,)})
    history.ask(ExpireMember(history.group().group_id, b.member_id))
    rebalance(history, {a: (0, 1)})
    told = story(history)
    assert told[:2] == [
        "The group rebalanced because a member's session expired (an administrator asked for it): "
        "b (client at 127.0.0.1).",
        "b was removed as if its session had expired.",
    ]


def test_a_member_that_hears_late_and_one_that_works_on(history: History) -> None:
    a, b = consumer(history, "a"), consumer(history, "b")
    rebalance(history, {a: (0, 1)})
    b.enter()
    history.sleep(2_800)
    a.heartbeat()
    rebalance(history, {a: (0,), b: (1,)})
    assert story(history)[1:] == [
        "2 members joined; the last was a, after 2.800 s: it heard of the rebalance only after 2.800 s, with "
        "its heartbeat.",
        "It took 2.800 s until all had their assignments.",
        "t-1 moved from a to b.",
    ]
    c = consumer(history, "c")
    c.enter()
    a.heartbeat()
    b.heartbeat()
    b.join()
    history.sleep(4_000)
    a.join()
    history.sleep(60)
    all_sync({a: (0,), b: (), c: (1,)})
    assert story(history)[1:] == [
        "3 members joined; the last was a, after 4.000 s: it heard of the rebalance after 0.000 s, and took "
        "4.000 s to join.",
        "The leader, a, took 0.060 s to assign the partitions.",
        "It took 4.060 s until all had their assignments.",
        "t-1 moved from b to c.",
        "What moved had no owner for up to 4.060 s.",
        "2 members did not consume meanwhile, b the longest: 4.060 s.",
    ]


def test_a_member_that_is_given_up(history: History) -> None:
    a, b = consumer(history, "a"), consumer(history, "b", session_timeout_ms=10 * REBALANCE_MS)
    rebalance(history, {a: (0, 1)})
    b.enter()
    rebalance(history, {a: (0,), b: (1,)})
    a.join()
    history.sleep(REBALANCE_MS)
    all_sync({a: (0, 1)})
    told = story(history)
    assert "b did not join before the rebalance timeout, and was removed." in told
    assert f"The others waited {seconds(REBALANCE_MS)} more for b." in told
    assert "t-1 moved from b to a." in told


def test_a_member_that_died(history: History) -> None:
    a, b = consumer(history, "a"), consumer(history, "b")
    rebalance(history, {a: (0, 1)})
    b.enter()
    rebalance(history, {a: (0,), b: (1,)})
    history.sleep(SESSION_MS - 1)
    a.heartbeat()
    history.sleep(1)
    rebalance(history, {a: (0, 1)})
    expired = f"its session expired, {seconds(SESSION_MS)} after its last sign of life."
    assert story(history)[1] == f"b was not heard of any more, and {expired}"


def test_the_last_member_leaves(history: History) -> None:
    a = consumer(history, "a")
    rebalance(history, {a: (0, 1)})
    a.leave()
    assert story(history)[1:] == ["a left.", "The group has no members left.", "Nobody has t-0 and t-1 now."]


def test_a_rebalance_that_gives_way(history: History) -> None:
    a = consumer(history, "a")
    all_join(history, a)
    consumer(history, "b").enter()
    assert story(history)[-1] == (
        "After 0.005 s it gave way to the next rebalance, before all members had an assignment."
    )


def test_lists_and_durations() -> None:
    assert [listed(names) for names in ([], ["a"], ["a", "b"], "abc")] == ["", "a", "a and b", "a, b and c"]
    assert listed(map(str, range(9))) == "0, 1, 2, 3 and 5 others"
    assert [seconds(ms) for ms in (0, 9_999, 10_000, 123_456)] == ["0.000 s", "9.999 s", "10.0 s", "123.5 s"]


def test_the_timeline(history: History) -> None:
    a, b = consumer(history, "a"), consumer(history, "bee")
    rebalance(history, {a: (0, 1)})
    b.enter()
    history.sleep(20)
    a.heartbeat()
    history.sleep(10)
    all_join(history, a)
    history.sleep(30)
    all_sync({a: (0,), b: (1,)})
    shown = list(shown_in_turn(history.rebalances))[-1]
    assert list(timeline(shown)) == [
        "",
        "     0 s                                                  0.060 s",
        f"a    {'·' * 20}{'-' * 10}{'░' * 30}",
        f"bee  {'▒' * 30}{'░' * 30}",
        f"     {LEGEND}",
    ]


def test_thousands_of_members_with_one_client_id_get_names_soon() -> None:
    members = [Who(f"app-{number:08}-{number}", "app", "/10.0.0.1") for number in range(20_000)]
    began_s = time.process_time()
    names = short_names(members)
    assert time.process_time() - began_s < 2
    assert names["app-00000007-7"] == "app-00000007"
