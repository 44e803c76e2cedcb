"""The answers to heartbeats, and how long they keep a member."""

import pytest

from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import SESSION_MS, History, protocols


def test_an_unknown_group_an_unknown_member_and_an_empty_group(history: History) -> None:
    """[88]"""
    stranger = history.client(member_id="stranger", generation_id=1)
    assert stranger.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    (client,) = history.stable(1)
    assert stranger.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.heartbeat(generation_id=7) == ErrorCode.UNKNOWN_MEMBER_ID
    client.leave()
    assert client.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_dead_group(history: History) -> None:
    """[89]"""
    (client,) = history.stable(1)
    history.group().transition_to(State.DEAD, history.now_ms)
    assert client.heartbeat() == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("generation_id", [-1, 0, 2])
def test_another_generation(history: History, generation_id: int) -> None:
    """[90]"""
    (client,) = history.stable(1)
    assert client.heartbeat(generation_id=generation_id) == ErrorCode.ILLEGAL_GENERATION


def test_while_the_others_join_it_counts_with_the_old_generation(history: History) -> None:
    """[91]"""
    leader, follower = history.stable(2)
    leader.join()
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert follower.heartbeat(generation_id=2) == ErrorCode.ILLEGAL_GENERATION


def test_while_assignments_are_awaited_and_after(history: History) -> None:
    """[92]"""
    (client,) = history.stable(1)
    assert client.heartbeat() == ErrorCode.NONE
    client.join()
    assert history.group().state is State.COMPLETING_REBALANCE
    assert client.heartbeat() == ErrorCode.NONE


def test_a_pending_id_is_unknown(history: History) -> None:
    history.stable(1)
    client = history.client(generation_id=1)
    client.join()
    assert client.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_it_keeps_a_member_for_one_session_timeout(history: History) -> None:
    """[93]"""
    (client,) = history.stable(1)
    for _ in range(5):
        history.sleep(SESSION_MS - 1)
        assert client.heartbeat() == ErrorCode.NONE
    history.sleep(SESSION_MS)
    assert client.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_it_keeps_a_member_in_a_join_phase_too(history: History) -> None:
    """[94]"""
    leader, follower = history.stable(2)
    leader.protocols = protocols("range", metadata=b"other")
    leader.join()
    for _ in range(3):
        history.sleep(SESSION_MS - 1)
        assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    history.sleep(SESSION_MS)
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.generation_id == 2


@pytest.mark.parametrize("fields", [{"generation_id": 9}, {"group_instance_id": "other"}])
def test_one_that_is_refused_keeps_nobody(history: History, fields: dict[str, str]) -> None:
    (client,) = history.stable(1)
    history.sleep(SESSION_MS - 1)
    assert client.heartbeat(**fields) != ErrorCode.NONE
    history.sleep(1)
    assert history.group().members == {}


def test_each_member_has_its_own_session(history: History) -> None:
    short, long = history.stable(2)
    long.protocols = protocols("range", metadata=b"other")
    long.session_timeout_ms = 30_000
    long.join()
    short.join()
    short.sync()
    long.sync()
    history.sleep(SESSION_MS)
    assert list(history.group().members) == [long.member_id]
