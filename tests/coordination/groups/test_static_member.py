"""Members with a group instance id come back without a member id, and users of the old id are fenced."""

import pytest

from kshim.coordination.groups.describe import describe
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from schemas.messages.sync_group import SyncGroupResponse
from tests.coordination.groups.history import DELAY_MS, REBALANCE_MS, SESSION_MS, Client, History, protocols

FENCED, UNKNOWN, NONE = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE
CHANGED = protocols("range", metadata=b"other")


def came_back(client: Client) -> Client:
    """Join as the same instance after a restart, without its member id."""
    return client.history.client(group_instance_id=client.group_instance_id, protocols=client.protocols)


class TestFirstJoin:
    @pytest.mark.parametrize("version", [5, 9])
    def test_it_is_admitted_at_once(self, history: History, version: int) -> None:
        """[48]"""
        client = history.client(group_instance_id="i")
        token = client.join(version)
        history.sleep(DELAY_MS)
        answer = client.answer(token)
        assert (answer.error_code, answer.member_id, answer.leader) == (NONE, "i-1", "i-1")
        assert answer.members == (
            JoinGroupResponseMember(member_id="i-1", group_instance_id="i", metadata=b"topics"),
        )

    def test_the_wrong_id_for_its_instance_is_fenced(self, history: History) -> None:
        """[48] [68]"""
        first, second = history.stable(2, static=True)
        for member_id in ("made-up", second.member_id):
            token = first.join(member_id=member_id)
            assert first.answer(token) == JoinGroupResponse(error_code=FENCED, member_id=member_id)

    def test_an_instance_that_the_group_does_not_know_with_an_id_that_it_knows(
        self, history: History
    ) -> None:
        """[70]"""
        (client,) = history.stable(1, static=True)
        token = client.join(group_instance_id="other")
        assert client.answer(token) == JoinGroupResponse(error_code=UNKNOWN, member_id=client.member_id)

    def test_every_return_has_a_new_id(self, history: History) -> None:
        """[50]"""
        (client,) = history.stable(1, static=True)
        ids = [client.member_id]
        for _ in range(3):
            client = came_back(client)
            client.join()
            ids.append(client.member_id)
        assert len(set(ids)) == 4
        assert list(history.group().members) == [ids[-1]]

    def test_the_instance_may_be_left_out(self, history: History) -> None:
        (client,) = history.stable(1, static=True)
        assert client.heartbeat(group_instance_id=None) == NONE


class TestReturnToAStableGroup:
    def test_a_follower_goes_on_where_it_was(self, history: History) -> None:
        """[51] [66]"""
        leader, follower = history.stable(2, static=True)
        records = len(history.journal)
        again = came_back(follower)
        assert again.answer(again.join()) == JoinGroupResponse(
            error_code=NONE,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader=leader.member_id,
            skip_assignment=False,
            member_id=again.member_id,
            members=(),
        )
        assert history.group().state is State.STABLE
        assert again.answer(again.sync()).assignment == b"1"
        assert leader.heartbeat() == NONE
        (record,) = history.records()[records:]
        assert [(m.member_id, m.assignment) for m in record.value.members] == [
            (leader.member_id, b"0"),
            (again.member_id, b"1"),
        ]

    def test_a_leader_is_told_not_to_assign_anew(self, history: History) -> None:
        """[59]"""
        leader, follower = history.stable(2, static=True)
        again = came_back(leader)
        answer = again.answer(again.join(9))
        assert (answer.leader, answer.skip_assignment) == (again.member_id, True)
        assert {member.member_id for member in answer.members} == {again.member_id, follower.member_id}
        assert history.group().leader == again.member_id

    @pytest.mark.parametrize("version", [5, 8])
    def test_before_v9_a_leader_is_shown_its_old_id_as_the_leader(
        self, history: History, version: int
    ) -> None:
        """[59]"""
        leader, _ = history.stable(2, static=True)
        again = came_back(leader)
        answer = again.answer(again.join(version))
        assert (answer.leader, answer.skip_assignment, answer.members) == (leader.member_id, False, ())
        assert history.group().leader == again.member_id

    def test_the_old_id_is_fenced(self, history: History) -> None:
        """[57] [59] [69]"""
        old, _ = history.stable(2, static=True)
        came_back(old).join()
        assert old.answer(old.join()) == JoinGroupResponse(error_code=FENCED, member_id=old.member_id)
        assert old.answer(old.sync()) == SyncGroupResponse(error_code=FENCED)
        assert old.heartbeat() == FENCED
        assert old.commit(7) == FENCED
        assert old.leave() == FENCED
        assert old.error(old.sync(group_instance_id=None)) == UNKNOWN
        assert old.heartbeat(group_instance_id=None) == UNKNOWN
        assert old.leave(group_instance_id=None) == UNKNOWN

    def test_two_live_members_with_one_instance_are_reported(self, history: History) -> None:
        """A waiting heartbeat shows that the old client lives, and so does its next request."""
        old, other = history.stable(2, static=True)
        waiting = old.wait()
        again = came_back(old)
        again.join()
        assert history.answer(waiting).error_code == FENCED
        (found,) = history.two_holders
        assert f"two live members use group.instance.id {old.group_instance_id}: " in found
        assert f"took the place of {old.member_id} (client " in found
        old.heartbeat()
        assert len(history.two_holders) == 1
        assert history.resumed == []
        came_back(other).join()
        assert (len(history.two_holders), len(history.resumed)) == (1, 1)
        other.heartbeat()
        other.heartbeat()
        assert len(history.two_holders) == 2

    def test_other_subscriptions_and_timeouts_are_taken_over(self, history: History) -> None:
        """[51]"""
        (old,) = history.stable(1, static=True)
        again = came_back(old)
        again.protocols, again.session_timeout_ms, again.rebalance_timeout_ms = CHANGED, 7_000, 8_000
        assert again.error(again.join()) == NONE
        member = history.group().members[again.member_id]
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (7_000, 8_000)
        assert member.metadata("range") == b"other"
        assert history.group().state is State.STABLE

    def test_other_protocols_of_which_the_same_is_chosen(self, history: History) -> None:
        """[64]"""
        _, old = history.stable(2, static=True)
        again = came_back(old)
        again.protocols = protocols("range", "sticky")
        assert again.error(again.join()) == NONE
        assert history.group().state is State.STABLE

    def test_other_protocols_of_which_another_is_chosen(self, history: History) -> None:
        """[52] [63]"""
        leader, follower = history.stable(2, static=True, protocols=protocols("range", "sticky"))
        again = came_back(follower)
        again.protocols = protocols("sticky")
        token = again.join()
        assert history.is_parked(token)
        assert history.group().state is State.PREPARING_REBALANCE
        history.sleep(SESSION_MS - 1)
        leader.heartbeat()
        leader.join()
        answer = again.answer(token)
        assert (answer.generation_id, answer.protocol_name) == (2, "sticky")
        assert len(history.group().members) == 2

    def test_the_session_of_the_old_id_does_not_end_the_new_one(self, history: History) -> None:
        (old,) = history.stable(1, static=True)
        history.sleep(SESSION_MS - 1)
        again = came_back(old)
        again.join()
        history.sleep(SESSION_MS - 1)
        assert again.heartbeat() == NONE

    def test_it_survives_a_restart(self, history: History) -> None:
        leader, follower = history.stable(2, static=True)
        again = came_back(follower)
        again.join()
        history.restart()
        assert again.answer(again.sync()).assignment == b"1"
        assert leader.heartbeat() == NONE
        assert follower.heartbeat() == FENCED


class TestReturnWhileRebalancing:
    def test_a_parked_join_is_fenced(self, history: History) -> None:
        """[49] [111]"""
        client = history.client(group_instance_id="i")
        first = client.join()
        second = client.join()
        assert client.answer(first) == JoinGroupResponse(error_code=FENCED, member_id="i-1")
        history.sleep(DELAY_MS)
        answer = client.answer(second)
        assert (answer.error_code, answer.member_id, answer.leader) == (NONE, "i-2", "i-2")
        assert len(history.group().members) == 1

    def test_one_that_came_back_is_waited_with_for_longer_than_its_session(self) -> None:
        history = History(group_initial_rebalance_delay_ms=20_000)
        client = history.client(group_instance_id="i")
        client.join()
        token = client.join()
        history.sleep(20_000)
        assert client.answer(token).generation_id == 1

    def test_the_parked_join_of_a_follower_is_fenced(self, history: History) -> None:
        """[55]"""
        leader, follower = history.stable(2, static=True)
        follower.protocols = CHANGED
        token = follower.join()
        again = came_back(follower)
        parked = again.join()
        assert follower.answer(token) == JoinGroupResponse(
            error_code=FENCED, generation_id=-1, leader="", member_id=follower.member_id
        )
        leader.join()
        assert again.answer(parked).generation_id == 2

    def test_a_parked_sync_is_fenced_and_the_join_phase_begins_anew(self, history: History) -> None:
        """[54] [56] [111]"""
        leader, follower = self.completing(history)
        token = follower.sync()
        again = came_back(follower)
        parked = again.join()
        assert follower.answer(token) == SyncGroupResponse(error_code=FENCED)
        assert history.group().state is State.PREPARING_REBALANCE
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        history.sleep(REBALANCE_MS)
        answer = again.answer(parked)
        assert (answer.leader, answer.generation_id) == (again.member_id, 3)

    def test_the_leader_s_parked_followers_are_sent_back(self, history: History) -> None:
        """[54]"""
        leader, follower = self.completing(history)
        token = follower.sync()
        came_back(leader).join()
        assert follower.error(token) == ErrorCode.REBALANCE_IN_PROGRESS

    @staticmethod
    def completing(history: History) -> list[Client]:
        clients = history.stable(2, static=True)
        for client in clients:
            client.protocols = CHANGED
            client.join()
        assert history.group().state is State.COMPLETING_REBALANCE
        return clients


class TestReturnWithItsId:
    def test_alone_while_completing(self, history: History) -> None:
        """[58]"""
        client = history.client(group_instance_id="i")
        client.enter()
        history.sleep(DELAY_MS)
        assert client.error(client.join()) == NONE
        assert history.group().state is State.COMPLETING_REBALANCE
        client.sync({client: b"all"})
        assert history.group().state is State.STABLE

    def test_the_leader(self, history: History) -> None:
        """[60]"""
        leader, follower = history.stable(2, static=True)
        token = leader.join()
        assert history.is_parked(token)
        follower.join()
        assert leader.error(token) == NONE

    @pytest.mark.parametrize(
        ("state", "error"),
        [(State.DEAD, ErrorCode.COORDINATOR_NOT_AVAILABLE), (State.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID)],
    )
    def test_a_group_that_is_gone(self, history: History, state: State, error: ErrorCode) -> None:
        """[61]"""
        (client,) = history.stable(1, static=True)
        if state is State.DEAD:
            history.group().transition_to(State.DEAD, history.now_ms)
        else:
            client.leave()
        assert client.error(client.join()) == error

    def test_a_follower_with_other_protocols(self, history: History) -> None:
        """[62]"""
        leader, follower = history.stable(2, static=True, session_timeout_ms=600_000)
        follower.protocols = CHANGED
        token = follower.join()
        history.sleep(REBALANCE_MS)
        answer = follower.answer(token)
        assert (answer.generation_id, answer.leader) == (2, follower.member_id)
        assert leader.member_id in history.group().members

    def test_a_follower_with_the_same_protocols(self, history: History) -> None:
        """[67]"""
        _, follower = history.stable(2, static=True)
        records = len(history.journal)
        assert follower.error(follower.join()) == NONE
        assert (history.group().state, len(history.journal)) == (State.STABLE, records)

    def test_the_leader_and_then_a_follower_with_other_protocols(self, history: History) -> None:
        """[65]"""
        leader, follower = history.stable(2, static=True)
        leader.join()
        follower.join()
        assert (leader.generation_id, follower.generation_id) == (2, 2)
        follower.protocols = CHANGED
        token = follower.join()
        assert history.group().state is State.PREPARING_REBALANCE
        history.sleep(SESSION_MS)
        answer = follower.answer(token)
        assert (answer.generation_id, answer.leader) == (3, follower.member_id)
        assert list(history.group().members) == [follower.member_id]


class TestSilence:
    def test_a_silent_follower_is_listed_in_the_next_generation(self, history: History) -> None:
        """[71]"""
        leader, silent = history.stable(2, static=True, session_timeout_ms=600_000)
        token = leader.join()
        history.client(session_timeout_ms=600_000).enter()
        history.sleep(REBALANCE_MS)
        answer = leader.answer(token)
        assert answer.generation_id == 2
        assert silent.member_id in {member.member_id for member in answer.members}

    def test_a_silent_leader_is_listed_in_the_next_generation(self, history: History) -> None:
        """[72]"""
        silent, follower = history.stable(2, static=True, session_timeout_ms=600_000)
        follower.protocols = CHANGED
        token = follower.join()
        history.sleep(REBALANCE_MS)
        answer = follower.answer(token)
        assert answer.leader == follower.member_id
        assert silent.member_id in {member.member_id for member in answer.members}

    def test_it_goes_when_its_session_ends(self, history: History) -> None:
        leader, silent = history.stable(2, static=True)
        history.sleep(SESSION_MS - 1)
        leader.heartbeat()
        history.sleep(1)
        assert silent.member_id not in history.group().members
        assert "instance-1" not in history.group().static_members
        assert silent.heartbeat() == UNKNOWN


def test_people_see_the_client_that_is_the_member_now_and_requests_the_first_one(history: History) -> None:
    """DescribeGroups and the record have the first client, as in Apache Kafka."""
    (first,) = history.stable(1, static=True)
    second = history.client(group_instance_id="i", client_id="second", protocols=first.protocols)
    second.group_instance_id = first.group_instance_id
    second.join()
    (member,) = history.group().members.values()
    assert (member.client_id, member.described_client[0]) == ("second", "client")
    (described,) = describe(history.group()).members
    assert (described.member_id, described.client_id) == (second.member_id, "client")
    assert member.to_metadata("range").client_id == "client"
