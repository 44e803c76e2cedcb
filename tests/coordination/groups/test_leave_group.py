"""Members leave, alone or many at once."""

import pytest

from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataValue
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from tests.coordination.groups.history import History


def leave(history: History, *members: tuple[str, str | None]) -> LeaveGroupResponse:
    """Send a LeaveGroup for all of these, each with member id and instance id."""
    identities = tuple(MemberIdentity(member_id=m, group_instance_id=i) for m, i in members)
    answer: LeaveGroupResponse = history.ask(LeaveGroupRequest(group_id="group", members=identities))
    assert [(entry.member_id, entry.group_instance_id) for entry in answer.members] == list(members)
    return answer


def errors(answer: LeaveGroupResponse) -> list[int]:
    assert answer.error_code == ErrorCode.NONE
    return [entry.error_code for entry in answer.members]


NONE, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID


def test_an_unknown_group_knows_none_of_the_members(history: History) -> None:
    """[96]"""
    assert errors(leave(history, ("a", None), ("", "i"))) == [UNKNOWN, UNKNOWN]
    assert history.groups() == {}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_v3_the_one_member_s_error_is_the_answer(history: History, version: int) -> None:
    """[96] [97]"""
    request = LeaveGroupRequest(group_id="group", member_id="stranger")
    assert history.ask(request, version) == LeaveGroupResponse(error_code=UNKNOWN)
    (client,) = history.stable(1)
    assert history.ask(request, version) == LeaveGroupResponse(error_code=UNKNOWN)
    known = LeaveGroupRequest(group_id="group", member_id=client.member_id)
    assert history.ask(known, version) == LeaveGroupResponse(error_code=NONE)
    assert history.group().state is State.EMPTY


def test_a_member_that_is_not_known(history: History) -> None:
    """[97]"""
    history.stable(1)
    assert errors(leave(history, ("stranger", None), ("", None), ("", "i"))) == [UNKNOWN] * 3
    assert history.group().state is State.STABLE


def test_a_dead_group(history: History) -> None:
    """[98]"""
    history.stable(1)
    history.group().transition_to(State.DEAD, history.now_ms)
    request = LeaveGroupRequest(group_id="group", members=(MemberIdentity(member_id="client-1"),))
    assert history.ask(request) == LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_the_last_member_leaves_an_empty_group(history: History) -> None:
    """[99]"""
    (client,) = history.stable(1)
    assert leave(history, (client.member_id, None)) == LeaveGroupResponse(
        error_code=NONE, members=(MemberResponse(member_id=client.member_id, group_instance_id=None),)
    )
    assert history.group().state is State.EMPTY
    assert history.records()[-1].value == GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol=None,
        leader=None,
        current_state_timestamp=history.now_ms,
        members=(),
    )


def test_nobody_leaves(history: History) -> None:
    history.stable(1)
    assert errors(leave(history)) == []
    assert history.group().state is State.STABLE


def test_another_one_leads_when_the_leader_leaves(history: History) -> None:
    leader, follower = history.stable(2)
    assert leader.leave() == NONE
    assert history.group().leader == follower.member_id
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


class TestStaticMembers:
    def test_the_wrong_id_is_fenced_and_the_others_leave(self, history: History) -> None:
        """[100]"""
        first, second = history.stable(2, static=True)
        answer = leave(history, (second.member_id, "instance-0"), (second.member_id, "instance-1"))
        assert errors(answer) == [FENCED, NONE]
        assert list(history.group().members) == [first.member_id]

    def test_one_leaves_by_its_instance_id(self, history: History) -> None:
        """[101]"""
        history.stable(1, static=True)
        assert errors(leave(history, ("", "instance-0"))) == [NONE]
        assert history.group().members == {}

    def test_many_at_once_cause_one_rebalance(self, history: History) -> None:
        """[102]"""
        clients = history.stable(3, static=True)
        assert errors(leave(history, ("", "instance-1"), (clients[2].member_id, None))) == [NONE, NONE]
        assert history.group().state is State.PREPARING_REBALANCE
        clients[0].join()
        assert clients[0].generation_id == 2

    def test_an_unknown_instance_is_unknown_and_the_others_leave(self, history: History) -> None:
        """[102]"""
        history.stable(2, static=True)
        answer = leave(history, ("", "other"), ("", "instance-0"), ("", "instance-0"))
        assert errors(answer) == [UNKNOWN, NONE, UNKNOWN]

    def test_all_leave(self, history: History) -> None:
        """[102]"""
        history.stable(2, static=True)
        assert errors(leave(history, ("", "instance-0"), ("", "instance-1"))) == [NONE, NONE]
        assert (history.group().state, history.group().generation) == (State.EMPTY, 2)

    def test_no_instance_id_is_not_the_empty_instance_id(self, history: History) -> None:
        static = history.client(group_instance_id="")
        static.enter()
        assert errors(leave(history, ("", None))) == [UNKNOWN]
        assert errors(leave(history, ("", ""))) == [NONE]


class TestPendingIds:
    def test_one_that_leaves_ends_the_wait_for_it(self, history: History) -> None:
        """[103]"""
        leader, follower = history.stable(2)
        pending = history.client()
        pending.join()
        leader.join()
        token = follower.join()
        assert history.is_parked(token)
        assert pending.leave() == NONE
        assert follower.answer(token).generation_id == 2
        assert pending.error(pending.join()) == UNKNOWN

    def test_one_that_leaves_a_stable_group_disturbs_nobody(self, history: History) -> None:
        """Apache Kafka rebalances here, though no member has changed."""
        (client,) = history.stable(1)
        pending = history.client()
        pending.join()
        assert pending.leave() == NONE
        assert history.group().state is State.STABLE
        assert client.heartbeat() == NONE

    def test_its_instance_id_does_not_matter(self, history: History) -> None:
        history.stable(1)
        pending = history.client()
        pending.join()
        assert pending.leave(group_instance_id="any") == NONE

    def test_members_and_pending_ids_and_strangers_in_one_request(self, history: History) -> None:
        """[104]"""
        member, other = history.stable(2)
        pending = history.client()
        pending.join()
        answer = leave(history, ("stranger", None), (pending.member_id, None), (member.member_id, None))
        assert errors(answer) == [UNKNOWN, NONE, NONE]
        group = history.group()
        assert (list(group.members), group.pending_join) == ([other.member_id], set())


def test_the_parked_join_of_a_member_that_leaves_is_answered(history: History) -> None:
    leader, _ = history.stable(2)
    token = leader.join()
    assert leader.leave() == NONE
    assert history.answer(token).error_code == UNKNOWN
    assert history.answer(token).member_id == ""


def test_the_reason_is_kept_with_the_rebalance(history: History) -> None:
    (client,) = history.stable(1)
    assert client.leave(reason="shut down") == NONE
    assert history.rebalances[-1].reason == "shut down"
    assert [each.member_id for each in history.rebalances[-1].members] == [client.member_id]
