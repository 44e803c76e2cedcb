"""Rebalances found from what members report: the cause, the generations, and the duration."""

from kshim.demo.rebalances import rebalances
from tests.demo.history import (
    RUN,
    A,
    B,
    C,
    assigned,
    committed,
    joining,
    killed,
    ready,
    revoked,
    stopping,
)


def rows(*events):
    return [(r.cause, r.before, r.after, r.noticed_ms, r.took_ms) for r in rebalances(events)]


def test_the_whole_run():
    assert rows(*RUN) == [
        ("consumer-1 joins", None, 1, None, 100),
        ("consumer-2 joins", 1, 2, 1_400, 230),
        ("consumer-2 is killed", 2, 3, 9_000, 6_010),
        ("server killed, 1.3 s down", 3, 3, None, 1_800),
    ]


def test_members_and_their_partitions():
    assert rebalances(RUN)[1].members == ((A, (0, 1)), (B, (2, 3)))


def test_the_order_in_which_events_arrive_does_not_matter():
    assert rebalances(tuple(reversed(RUN))) == rebalances(RUN)


def test_two_join_at_once():
    events = [joining(10, B), joining(20, A), assigned(50, A, 1, 0, 1), assigned(60, B, 1, 2, 3)]
    assert rows(*events) == [("consumer-1 and consumer-2 join", None, 1, None, 50)]


def test_a_generation_without_the_new_member_is_not_the_answer():
    events = [joining(10, A), joining(20, B), assigned(30, A, 1, 0, 1, 2, 3), revoked(40, A, 0, 1, 2, 3)]
    events += [assigned(50, A, 2, 0, 1), assigned(55, B, 2, 2, 3)]
    assert rows(*events) == [("consumer-1 joins", None, 1, None, 20), ("consumer-2 joins", 1, 2, 40, 35)]


def test_a_member_leaves():
    events = [joining(0, A), joining(0, B), assigned(10, A, 1, 0, 1), assigned(10, B, 1, 2, 3)]
    events += [
        stopping(100, B),
        revoked(110, B, 2, 3),
        revoked(300, A, 0, 1),
        assigned(310, A, 2, 0, 1, 2, 3),
    ]
    assert rows(*events)[1] == ("consumer-2 leaves", 1, 2, 110, 210)


def test_the_leader_that_did_not_know_the_partitions():
    events = [joining(0, A), assigned(10, A, 1), assigned(150, A, 2, 0, 1, 2, 3)]
    assert rows(*events)[1][:3] == ("the leader finds the topic's partitions", 1, 2)


def test_members_that_join_again_without_a_visible_reason():
    events = [
        joining(0, A),
        assigned(10, A, 1, 0, 1, 2, 3),
        revoked(500, A, 0, 1, 2, 3),
        assigned(530, A, 2, 0, 1, 2, 3),
    ]
    assert rows(*events)[1] == ("members join again", 1, 2, None, 30)


def test_a_generation_of_which_not_all_told():
    events = [joining(0, A), joining(0, B), assigned(10, A, 1, 0, 1)]
    events += [
        revoked(300, A, 0, 1),
        assigned(310, A, 2, 0, 1),
        assigned(320, B, 2, 2, 3),
        assigned(400, B, 3, 2, 3),
    ]
    assert [row[0] for row in rows(*events)] == ["consumer-1 joins", "consumer-2 joins", "members join again"]


def test_a_server_that_was_away_too_long():
    events = [joining(0, A), assigned(10, A, 1, 0, 1, 2, 3), killed(100, "server"), ready(9_000)]
    events += [revoked(9_100, A, 0, 1, 2, 3), assigned(9_200, A, 2, 0, 1, 2, 3), committed(9_300, A, (0, 1))]
    assert rows(*events)[1] == ("server is killed", 1, 2, 9_100, 9_100)


def test_a_server_that_never_came_back():
    events = [joining(0, A), assigned(10, A, 1, 0, 1, 2, 3), killed(100, "server")]
    assert rows(*events) == [("consumer-1 joins", None, 1, None, 10)]


def test_a_server_that_forgot_its_groups_counts_generations_anew():
    events = [ready(0), joining(0, A), assigned(10, A, 1, 0, 1, 2, 3), killed(100, "server"), ready(900)]
    events += [revoked(950, A, 0, 1, 2, 3), assigned(1_000, A, 1, 0, 1, 2, 3)]
    assert rows(*events) == [
        ("consumer-1 joins", None, 1, None, 10),
        ("server is killed", 1, 1, 950, 900),
    ]


def test_other_processes_are_no_members():
    events = [
        killed(5, "producer-1"),
        joining(10, C),
        assigned(20, C, 1, 0, 1, 2, 3),
        stopping(30, "producer-2"),
    ]
    assert rows(*events) == [("consumer-3 joins", None, 1, None, 10)]
