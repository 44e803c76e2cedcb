"""The recorded cause of each rebalance."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.rebalance_record import MOST_DEPARTED_BYTES
from kshim.coordination.groups.trigger import Gone, Trigger
from kshim.coordination.groups.why_again import MOST_ELEMENTS
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.coordination.groups.history import SESSION_MS, Client, History
from tests.recorder.groups import all_join, all_sync, consumer, owns, rebalance


@pytest.fixture
def history() -> History:
    return History(group_initial_rebalance_delay_ms=0)


@pytest.fixture
def clients(history: History) -> list[Client]:
    """`a`, which leads, has partitions 0 and 1 of topic t, `b` has 2 and 3."""
    a, b = consumer(history, "a"), consumer(history, "b")
    rebalance(history, {a: (0, 1)})
    b.enter()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    return [a, b]


def last(history: History) -> tuple[Trigger, str, str]:
    """The cause of the last rebalance, who set it off, and the detail."""
    found = history.rebalances[-1]
    return found.trigger, "".join(each.client_id for each in found.members), found.detail


def test_a_member_leaves(history: History, clients: list[Client]) -> None:
    a, b = clients
    b.leave(reason="the consumer is being closed")
    rebalance(history, {a: (0, 1, 2, 3)})
    assert last(history) == (Trigger.MEMBER_LEFT, "b", "")
    assert history.rebalances[-1].reason == "the consumer is being closed"
    assert history.rebalances[-1].parts[b.member_id].gone is Gone.LEFT


def test_an_administrator_removes_a_member(history: History, clients: list[Client]) -> None:
    a, b = clients
    identity = MemberIdentity(member_id=b.member_id)
    history.send(LeaveGroupRequest(group_id="group", members=(identity,)), client_id="adminclient-1")
    rebalance(history, {a: (0, 1, 2, 3)})
    assert last(history) == (Trigger.MEMBER_REMOVED, "b", "")


def test_a_session_expires(history: History, clients: list[Client]) -> None:
    a, b = clients
    silent_since_ms = history.now_ms
    history.sleep(SESSION_MS - 1)
    a.heartbeat()
    history.sleep(1)
    rebalance(history, {a: (0, 1, 2, 3)})
    assert last(history) == (Trigger.SESSION_EXPIRED, "b", "")
    part = history.rebalances[-1].parts[b.member_id]
    assert (part.gone, part.heard_ms, part.gone_ms) == (Gone.EXPIRED, silent_since_ms, history.now_ms)


def test_a_member_subscribes_to_another_topic(history: History, clients: list[Client]) -> None:
    a, b = clients
    owns(b, topics=("t", "u"))
    b.join()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    assert last(history) == (Trigger.SUBSCRIPTION_CHANGED, "b", "+u")


def test_a_cooperative_member_gives_partitions_up(history: History, clients: list[Client]) -> None:
    a, b = clients
    owns(a, 0, 1)
    owns(b, 2, 3)
    c = consumer(history, "c")
    c.enter()
    all_join(history, a, b, c)
    all_sync({a: (0, 1), b: (2,), c: ()})
    owns(b, 2)
    b.join()
    rebalance(history, {a: (0, 1), b: (2,), c: (3,)})
    assert last(history) == (Trigger.PARTITIONS_GIVEN_UP, "b", "t-3")
    assert history.rebalances[-2].is_complete


def test_a_topic_gets_partitions(history: History, clients: list[Client]) -> None:
    a, b = clients
    history.sleep(1_000)
    history.coordinator.topic_changed("t", "has 6 partitions, and had 4", history.now_ms)
    a.join()
    rebalance(history, {a: (0, 1, 4), b: (2, 3, 5)})
    assert last(history) == (Trigger.TOPIC_CHANGED, "a", "t has 6 partitions, and had 4")


def test_a_topic_that_had_changed_before_is_no_cause(history: History) -> None:
    history.coordinator.topic_changed("t", "was created", history.now_ms)
    a = consumer(history, "a")
    history.sleep(1)
    rebalance(history, {a: (0,)})
    a.join()
    rebalance(history, {a: (0,)})
    assert last(history) == (Trigger.LEADER_REJOINED, "a", "")


def test_the_coordinator_moves(history: History, clients: list[Client]) -> None:
    a, b = clients
    history.restart()
    a.join()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    assert last(history) == (Trigger.COORDINATOR_MOVED, "a", "")
    a.join()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    assert last(history) == (Trigger.LEADER_REJOINED, "a", "")


def test_a_coordinator_that_moved_long_ago_is_no_cause(history: History, clients: list[Client]) -> None:
    a, b = clients
    history.restart()
    for _ in range(2):
        history.sleep(SESSION_MS - 1)
        a.heartbeat()
        b.heartbeat()
    a.join()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    assert last(history) == (Trigger.LEADER_REJOINED, "a", "")


def test_a_rebalance_that_is_given_up_with_its_coordinator_is_told(
    history: History, clients: list[Client]
) -> None:
    a, b = clients
    b.join(reason="again")
    owns(a, topics=("t", "u"))
    a.join()
    history.resign()
    assert (last(history)[0], history.rebalances[-1].is_complete) == (Trigger.SUBSCRIPTION_CHANGED, False)
    assert history.rebalances[-1].generation == 3


def test_members_that_do_not_sync(history: History, clients: list[Client]) -> None:
    a, b = clients
    c = consumer(history, "c", session_timeout_ms=1_000_000)
    c.enter()
    all_join(history, a, b, c)
    a.sync({a: b"", b: b"", c: b""})
    b.sync()
    while history.group().state != "PreparingRebalance":
        history.sleep(1_000)
        a.heartbeat()
        b.heartbeat()
    rebalance(history, {a: (0, 1), b: (2, 3)})
    assert last(history) == (Trigger.SYNC_EXPIRED, "c", "")
    assert history.rebalances[-1].parts[c.member_id].gone is Gone.SILENT


def test_a_static_member_that_comes_back_needs_no_rebalance(history: History) -> None:
    a = consumer(history, "a", group_instance_id="i")
    rebalance(history, {a: (0, 1)})
    count = len(history.rebalances)
    before, a.member_id = a.member_id, ""
    a.join()
    (resumed,) = history.resumed
    assert (resumed.before, resumed.after.member_id) == (before, a.member_id)
    assert len(history.rebalances) == count
    assert str(resumed).startswith(f"group group: static member i came back as {a.member_id}, previously")


def test_a_static_member_that_comes_back_with_another_assignor(history: History) -> None:
    a = consumer(history, "a", group_instance_id="i")
    rebalance(history, {a: (0, 1)})
    before, a.member_id = a.member_id, ""
    a.protocols = tuple(type(each)(name="sticky", metadata=each.metadata) for each in a.protocols)
    a.protocols += consumer(history, "x").protocols
    a.join()
    a.member_id = history.group().static_members["i"]
    all_join(history, a)
    a.generation_id = history.group().generation
    a.sync({a: b""})
    assert last(history)[:2] == (Trigger.STATIC_MEMBER_REPLACED, "a")
    assert history.rebalances[-1].parts[before].gone is Gone.REPLACED


def test_a_cause_with_very_many_names_is_cut(history: History) -> None:
    a = consumer(history, "a")
    rebalance(history, {a: (0, 1)})
    owns(a, 0, 1, topics=[f"{n}-".ljust(249, "t") for n in range(10_000)])
    rebalance(history, {a: (0, 1)})
    trigger, _, detail = last(history)
    assert (trigger, len(detail), detail[:4]) == (Trigger.SUBSCRIPTION_CHANGED, 1_000, "+0-t")


def test_more_names_than_are_compared(history: History) -> None:
    a = consumer(history, "a")
    rebalance(history, {a: (0, 1)})
    owns(a, 0, 1, topics=map(str, range(MOST_ELEMENTS + 1)))
    rebalance(history, {a: (0, 1)})
    assert last(history) == (Trigger.LEADER_REJOINED, "a", "")


def test_members_that_come_and_go_without_end(history: History) -> None:
    """The rebalance under way keeps the first of them."""
    a = consumer(history, "a")
    rebalance(history, {a: (0, 1)})
    for n in range(100):
        guest = consumer(history, f"{n}-".ljust(30_000, "g"))
        guest.enter()
        guest.leave()
    record = history.group().rebalance
    assert record is not None
    assert 10 < len(history.group().departed) < 20
    assert record.size < 2 * MOST_DEPARTED_BYTES
    rebalance(history, {a: (0, 1)})
    assert not len(history.group().departed)
    assert len(history.rebalances[-1].parts) < 20


def test_a_subscription_that_cannot_be_stored_is_not_recorded(history: History) -> None:
    a = consumer(history, "a")
    rebalance(history, {a: (0, 1)})
    owns(a, 0, 1, topics=["t" * 30_000] * 40)
    all_join(history, a)
    record = history.group().rebalance
    assert record is not None
    assert record.parts[a.member_id].subscription == b""
    assert history.rebalances[-1].parts[a.member_id].subscription
