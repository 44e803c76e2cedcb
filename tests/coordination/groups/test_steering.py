"""An administrator's commands to a group, and the answers that its clients get then."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.states import State
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode
from tests.coordination.groups.history import SESSION_MS, History, assign

NONE, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS


def rebalance(history: History) -> ErrorCode:
    return ErrorCode(history.ask(ForceRebalance("group")))


def expire(history: History, member_id: str) -> ErrorCode:
    return ErrorCode(history.ask(ExpireMember("group", member_id)))


def fence(history: History, group_instance_id: str) -> ErrorCode:
    return ErrorCode(history.ask(FenceMember("group", group_instance_id)))


@pytest.mark.parametrize("request_", [ForceRebalance("g"), ExpireMember("g", "m"), FenceMember("g", "i")])
def test_there_is_no_such_group(history: History, request_: object) -> None:
    assert history.ask(request_) == ErrorCode.GROUP_ID_NOT_FOUND
    history.resign()
    assert history.ask(request_) == ErrorCode.NOT_COORDINATOR


# ---- rebalance


def test_all_members_are_told_to_join_again(history: History) -> None:
    leader, follower = history.stable(2)
    parked = leader.wait()
    assert rebalance(history) == NONE
    assert history.answer(parked).error_code == REBALANCING
    assert follower.heartbeat() == REBALANCING
    for client in (leader, follower):
        client.join()
    assert (leader.generation_id, follower.generation_id) == (2, 2)
    assign([leader, follower])
    assert history.rebalances[-1].trigger is Trigger.ASKED_FOR
    assert history.rebalances[-1].members == ()


def test_who_does_not_join_again_is_left_out(history: History) -> None:
    leader, _ = history.stable(2)
    rebalance(history)
    leader.join()
    history.sleep(SESSION_MS)
    assert list(history.group().members) == [leader.member_id]


def test_a_rebalance_under_way_goes_on(history: History) -> None:
    leader, follower = history.stable(2)
    rebalance(history)
    joined = leader.join()
    assert rebalance(history) == NONE
    assert history.is_parked(joined)
    follower.join()
    assert history.answer(joined).generation_id == 2


def test_members_that_wait_for_their_assignment_are_told(history: History) -> None:
    leader, follower = history.stable(2)
    leader.join()
    follower.join()
    parked = follower.sync()
    assert rebalance(history) == NONE
    assert history.answer(parked).error_code == REBALANCING


def test_a_group_without_members_does_not_rebalance(history: History) -> None:
    (client,) = history.stable(1)
    client.leave()
    assert rebalance(history) == UNKNOWN
    assert history.group().state is State.EMPTY


# ---- expire


def test_a_member_whose_session_was_ended_is_gone(history: History) -> None:
    stays, goes = history.stable(2)
    parked = goes.wait()
    assert expire(history, goes.member_id) == NONE
    assert history.answer(parked).error_code == UNKNOWN
    assert stays.heartbeat() == REBALANCING
    stays.join()
    assign([stays])
    record = history.rebalances[-1]
    assert (record.trigger, record.detail) == (Trigger.SESSION_EXPIRED, "an administrator asked for it")
    assert record.parts[goes.member_id].gone is Gone.ENDED


def test_the_last_member_leaves_an_empty_group(history: History) -> None:
    (client,) = history.stable(1)
    expire(history, client.member_id)
    assert history.group().state is State.EMPTY
    history.restart()
    assert not history.group().members


def test_a_member_may_go_while_its_join_is_parked(history: History) -> None:
    first, second = history.stable(2)
    parked = first.join()
    assert expire(history, first.member_id) == NONE
    assert history.answer(parked).error_code == UNKNOWN
    second.join()
    assert second.generation_id == 2


def test_an_id_that_was_handed_out_may_go(history: History) -> None:
    (first,) = history.stable(1)
    pending = history.client()
    pending.join()
    joined = first.join()
    assert history.is_parked(joined)
    assert expire(history, pending.member_id) == NONE
    assert history.answer(joined).generation_id == 2


def test_only_members_expire(history: History) -> None:
    history.stable(1)
    assert expire(history, "stranger") == UNKNOWN
    assert history.group().state is State.STABLE


# ---- fence


def test_the_client_of_a_static_member_is_fenced_and_the_others_notice_nothing(history: History) -> None:
    leader, follower = history.stable(2, static=True)
    parked = follower.wait()
    assert fence(history, "instance-1") == NONE
    assert history.answer(parked).error_code == FENCED
    assert follower.heartbeat() == FENCED
    assert follower.commit(1) == FENCED
    assert leader.heartbeat() == NONE
    assert history.group().state is State.STABLE
    history.restart()
    assert follower.heartbeat() == FENCED


def test_who_comes_back_has_the_place_again(history: History) -> None:
    leader, follower = history.stable(2, static=True)
    fence(history, "instance-1")
    again = history.client(group_instance_id="instance-1")
    again.join()
    assert again.generation_id == follower.generation_id
    assert leader.heartbeat() == NONE


def test_a_place_that_nobody_takes_is_given_up_after_a_session(history: History) -> None:
    leader, _ = history.stable(2, static=True)
    fence(history, "instance-1")
    history.sleep(SESSION_MS - 1)
    assert leader.heartbeat() == NONE
    history.sleep(1)
    assert leader.heartbeat() == REBALANCING


@pytest.mark.parametrize("synced", [False, True])
def test_before_all_are_assigned_the_others_join_again(history: History, synced: bool) -> None:
    leader, follower = history.stable(2, static=True)
    rebalance(history)
    leader.join()
    follower.join()
    parked = follower.sync() if synced else None
    assert fence(history, "instance-1") == NONE
    assert parked is None or history.answer(parked).error_code == FENCED
    assert leader.heartbeat() == REBALANCING
    leader.join()
    history.sleep(SESSION_MS)
    assert leader.generation_id == 3


def test_a_parked_join_is_fenced(history: History) -> None:
    leader, follower = history.stable(2, static=True)
    rebalance(history)
    parked = follower.join()
    fence(history, "instance-1")
    assert history.answer(parked).error_code == FENCED
    leader.join()
    history.sleep(SESSION_MS)
    assert leader.generation_id == 2


def test_only_static_members_are_fenced(history: History) -> None:
    (client,) = history.stable(1)
    assert fence(history, client.member_id) == UNKNOWN
