"""Time that people move ahead or hold: who keeps a session, and what does not wait."""

from __future__ import annotations

from kshim.coordination.groups.heartbeat import FIRST_PARK_MS
from kshim.coordination.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import REBALANCE_MS, SESSION_MS, Client, History

JUMP_MS = 10 * SESSION_MS


def jump(history: History, *connected: Client, by_ms: int = JUMP_MS) -> None:
    """Move time ahead at once; the members of these clients are connected."""
    members = {(client.group_id, client.member_id) for client in connected}
    history.coordinator.keep_sessions(members, history.now_ms, by_ms)
    history.now_ms += by_ms
    history.sleep(0)


def hasten(history: History) -> None:
    for decision in history.coordinator.hasten(history.now_ms):
        history._carry_out(decision)


def test_members_that_are_connected_stay_and_hear_of_it_at_once(history: History) -> None:
    stays, goes = history.stable(2)
    parked = stays.wait()
    jump(history, stays)
    assert history.answer(parked).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(history.group().members) == [stays.member_id]
    assert goes.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_rebalance_that_follows_has_its_whole_time(history: History) -> None:
    stays, _ = history.stable(2)
    jump(history, stays, by_ms=10 * REBALANCE_MS)
    for _ in range(REBALANCE_MS // SESSION_MS - 1):
        history.sleep(SESSION_MS - 1)
        assert stays.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(history.group().members) == [stays.member_id]


def test_nobody_stays_who_is_silent(history: History) -> None:
    history.stable(2)
    jump(history)
    assert history.group().state is State.EMPTY


def test_a_session_that_was_kept_ends_when_nobody_renews_it(history: History) -> None:
    (client,) = history.stable(1)
    jump(history, client)
    history.sleep(SESSION_MS - 1)
    assert history.group().members
    history.sleep(1)
    assert not history.group().members


def test_the_pause_between_heartbeats_does_not_seem_longer(history: History) -> None:
    """So the next one is parked for no longer than before."""
    (client,) = history.stable(1)
    client.wait()
    history.sleep(1000)
    jump(history, client)
    history.sleep(1000)
    token = client.wait()
    history.sleep(FIRST_PARK_MS)
    assert not history.is_parked(token)


def test_a_group_waits_for_connected_members_that_have_yet_to_sync(history: History) -> None:
    leader, follower = history.stable(2)
    for client in (leader, follower):
        client.join()
    leader.sync({leader: b"", follower: b""})
    jump(history, leader, follower, by_ms=10 * REBALANCE_MS)
    assert history.answer(follower.sync()).error_code == ErrorCode.NONE


def test_a_group_waits_for_connected_members_that_have_yet_to_join(history: History) -> None:
    leader, follower = history.stable(2)
    leader.join()
    jump(history, follower, by_ms=10 * REBALANCE_MS)
    assert len(history.group().members) == 2
    follower.join()
    assert follower.generation_id == 2


def test_a_group_does_not_wait_for_those_that_are_not_connected(history: History) -> None:
    leader, _ = history.stable(2)
    leader.join()
    jump(history, leader, by_ms=10 * REBALANCE_MS)
    assert list(history.group().members) == [leader.member_id]


def test_an_id_that_a_connected_client_was_given_stays(history: History) -> None:
    history.stable(1)
    newcomer = history.client()
    newcomer.join()
    jump(history, newcomer, by_ms=10 * REBALANCE_MS)
    assert history.group().pending_join == {newcomer.member_id}


def test_a_first_join_of_a_connected_client_stays_parked(history: History) -> None:
    (leader,) = history.stable(1)
    newcomer = history.client()
    token = newcomer.enter()
    jump(history, leader, newcomer, by_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert history.is_parked(token)
    leader.join()
    assert history.answer(token).error_code == ErrorCode.NONE


def test_who_is_no_member_is_not_kept(history: History) -> None:
    (client,) = history.stable(1)
    client.leave()
    jump(history, client, history.client("nowhere"), history.client(member_id="stranger"))
    assert history.group().state is State.EMPTY


def test_while_time_is_held_a_heartbeat_is_answered(history: History) -> None:
    (client,) = history.stable(1)
    token = client.wait()
    hasten(history)
    assert history.answer(token).error_code == ErrorCode.NONE
    assert history.group().members


def test_while_time_is_held_a_group_begins_without_a_delay() -> None:
    history = History(group_initial_rebalance_delay_ms=0)
    client = history.client()
    client.enter()
    assert client.generation_id == -1
    hasten(history)
    assert client.generation_id == 1


def test_while_time_is_held_what_takes_its_time_waits(history: History) -> None:
    leader, _ = history.stable(2)
    leader.join()
    hasten(history)
    assert history.group().state is State.PREPARING_REBALANCE
