"""Heartbeats whose answers wait: what releases them, with which answer, and when at the latest."""

import pytest

from kshim.coordination.groups.heartbeat import EARLY_MS, FIRST_PARK_MS, LONGEST_PARK_MS
from kshim.coordination.groups.parked import CLOSING_MS, TOGETHER_MS
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import SESSION_MS, Client, History, assign, protocols


def told(history: History, token: int) -> ErrorCode:
    return ErrorCode(history.answer(token).error_code)


def waits_ms(history: History, client: Client) -> int:
    """The time for which a heartbeat that `client` sends now stays parked."""
    token, began_ms = client.wait(), history.now_ms
    while history.is_parked(token):
        history.sleep(1)
    assert told(history, token) == ErrorCode.NONE
    return history.now_ms - began_ms


def test_all_hear_of_a_rebalance_when_it_begins(history: History) -> None:
    clients = history.stable(3)
    tokens = [client.wait() for client in clients]
    assert all(map(history.is_parked, tokens))
    history.client().enter()
    assert {told(history, token) for token in tokens} == {ErrorCode.REBALANCE_IN_PROGRESS}


def test_the_others_hear_soon_after_a_member_left(history: History) -> None:
    stays, leaves = history.stable(2)
    token = stays.wait()
    leaves.leave()
    assert history.group().state is State.PREPARING_REBALANCE
    history.sleep(CLOSING_MS - 1)
    assert history.is_parked(token)
    history.sleep(1)
    assert told(history, token) == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_are_closed_one_after_another_do_not_join_again(history: History) -> None:
    """Each can commit before it leaves."""
    *clients, last = history.stable(3)
    tokens = [client.wait() for client in clients]
    last.leave()
    for client, token in zip(clients, tokens, strict=True):
        history.sleep(CLOSING_MS // 4)
        assert history.is_parked(token)
        assert client.commit(1) == ErrorCode.NONE
        client.leave()
        assert told(history, token) == ErrorCode.UNKNOWN_MEMBER_ID
    assert history.group().state is State.EMPTY


def test_a_heartbeat_that_is_due_does_not_wait_longer_when_a_member_leaves(history: History) -> None:
    stays, leaves = history.stable(2)
    token = stays.wait()
    history.sleep(FIRST_PARK_MS - TOGETHER_MS)
    leaves.leave()
    history.sleep(TOGETHER_MS)
    assert told(history, token) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_request_behind_it_tells_that_a_member_has_left(history: History) -> None:
    stays, leaves = history.stable(2)
    token = stays.wait()
    leaves.leave()
    history.release_heartbeat(stays, token)
    assert told(history, token) == ErrorCode.REBALANCE_IN_PROGRESS


def test_it_is_answered_when_the_join_phase_ends(history: History) -> None:
    """The rebalance timeout may be shorter than the time in which members may be closed."""
    joins, silent, leaves = history.stable(3)
    for member in history.group().members.values():
        member.rebalance_timeout_ms = CLOSING_MS // 2
    tokens = [joins.wait(), silent.wait()]
    leaves.leave()
    joins.join()
    history.sleep(CLOSING_MS // 2)
    assert {told(history, token) for token in tokens} == {ErrorCode.REBALANCE_IN_PROGRESS}
    assert list(history.group().members) == [joins.member_id]
    assert history.group().state is State.COMPLETING_REBALANCE


def test_the_others_hear_when_a_session_expires(history: History) -> None:
    stays, dies = history.stable(2)
    history.sleep(SESSION_MS - 1)
    token = stays.wait()
    assert history.is_parked(token)
    history.sleep(1)
    assert told(history, token) == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(history.group().members) == [stays.member_id]
    assert dies.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_removed_hears_it(history: History) -> None:
    removed, _ = history.stable(2)
    token = removed.wait()
    removed.leave()
    assert told(history, token) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_replaced_hears_it(history: History) -> None:
    leader, old = history.stable(2, static=True)
    tokens = [leader.wait(), old.wait()]
    new = history.client(group_instance_id=old.group_instance_id)
    new.join()
    assert told(history, tokens[1]) == ErrorCode.FENCED_INSTANCE_ID
    assert history.is_parked(tokens[0]), "nobody rebalances"


def test_a_request_behind_it_releases_it(history: History) -> None:
    (client,) = history.stable(1)
    token = client.wait()
    history.release_heartbeat(client, token)
    assert told(history, token) == ErrorCode.NONE
    history.release_heartbeat(client, token)  # its connection may end later


def test_a_release_of_an_older_one_releases_nothing(history: History) -> None:
    (client,) = history.stable(1)
    first = client.wait()
    history.sleep(1_000)
    second = client.wait()
    assert told(history, first) == ErrorCode.NONE, "each member has one"
    history.release_heartbeat(client, first)
    assert history.is_parked(second)


def test_a_shard_that_is_given_up_answers(history: History) -> None:
    (client,) = history.stable(1)
    token = client.wait()
    history.resign()
    assert told(history, token) == ErrorCode.NOT_COORDINATOR


def test_what_is_refused_is_refused_at_once(history: History) -> None:
    leader, follower = history.stable(2)
    assert told(history, leader.wait(generation_id=7)) == ErrorCode.ILLEGAL_GENERATION
    assert told(history, leader.wait(member_id="stranger")) == ErrorCode.UNKNOWN_MEMBER_ID
    leader.join()
    assert told(history, follower.wait()) == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join()
    assert told(history, follower.wait()) == ErrorCode.NONE, "the group is not stable"


def test_the_session_runs_from_the_arrival(history: History) -> None:
    (client,) = history.stable(1)
    history.sleep(SESSION_MS - 1)
    token, began_ms = client.wait(), history.now_ms
    history.sleep(SESSION_MS - 1)
    assert not history.is_parked(token)
    assert client.member_id in history.group().members
    history.sleep(1)
    assert (history.group().members, history.now_ms) == ({}, began_ms + SESSION_MS)


@pytest.mark.parametrize("interval_ms", [1_000, 3_000])
def test_the_answer_leaves_before_the_next_heartbeat_is_due(history: History, interval_ms: int) -> None:
    """The first wait is a guess; then it is the distance of the last two."""
    (client,) = history.stable(1)
    began_ms = history.now_ms
    assert waits_ms(history, client) == FIRST_PARK_MS
    due_ms = max(interval_ms, FIRST_PARK_MS)
    history.sleep(began_ms + due_ms - history.now_ms)
    assert 0 <= due_ms - EARLY_MS - waits_ms(history, client) < TOGETHER_MS


def test_answers_that_are_due_together_leave_together(history: History) -> None:
    one, other = history.stable(2)
    history.sleep(TOGETHER_MS - history.now_ms % TOGETHER_MS)
    first = one.wait()
    history.sleep(TOGETHER_MS - 1)
    second = other.wait()
    history.sleep(FIRST_PARK_MS - TOGETHER_MS)
    assert history.is_parked(first)
    history.sleep(1)
    assert (told(history, first), told(history, second)) == (ErrorCode.NONE, ErrorCode.NONE)


def test_it_waits_for_a_third_of_the_session_at_most(history: History) -> None:
    (client,) = history.stable(1, session_timeout_ms=6_000)
    assert waits_ms(history, client) == 2_000
    history.sleep(3_500)
    assert waits_ms(history, client) == 2_000


def test_it_never_waits_longer_than_clients_do(history: History) -> None:
    (client,) = history.stable(1, session_timeout_ms=300_000)
    client.wait()
    history.sleep(100_000)
    assert waits_ms(history, client) == LONGEST_PARK_MS


def test_two_in_quick_succession_are_answered_at_once(history: History) -> None:
    (client,) = history.stable(1)
    client.wait()
    history.sleep(EARLY_MS)
    assert waits_ms(history, client) == 0


def test_a_rebalance_in_between_does_not_count(history: History) -> None:
    (client,) = history.stable(1)
    client.wait()
    client.protocols = protocols("range", metadata=b"other")
    history.sleep(5_000)
    client.join()
    assign([client])
    assert waits_ms(history, client) == FIRST_PARK_MS
