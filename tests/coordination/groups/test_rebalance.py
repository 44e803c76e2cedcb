"""Join phases: their ends and members, the silent members that are removed, and the reports."""

import pytest

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.offered import joined_names
from kshim.coordination.groups.rebalance import SHORTEST_DELAY_MS
from kshim.coordination.groups.rebalance_record import Part, Rebalance, Who
from kshim.coordination.groups.states import State
from kshim.coordination.groups.timers import TimerKey, TimerKind
from kshim.coordination.groups.trigger import Trigger
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, GroupMetadataValue
from schemas.messages.join_group import JoinGroupResponse
from tests.coordination.groups.history import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    START_MS,
    Client,
    History,
    assign,
)


class TestInitialDelay:
    def test_an_empty_group_waits_for_more_members(self, history: History) -> None:
        """[26]"""
        token = history.client().enter()
        history.sleep(DELAY_MS - 1)
        assert history.is_parked(token)
        history.sleep(1)
        assert not history.is_parked(token)

    def test_a_member_that_comes_in_time_extends_it(self, history: History) -> None:
        """[27]"""
        first = history.client(rebalance_timeout_ms=3 * DELAY_MS).enter()
        history.sleep(DELAY_MS - 1)
        second = history.client(rebalance_timeout_ms=3 * DELAY_MS).enter()
        history.sleep(DELAY_MS)
        assert history.parked == {first, second}
        history.sleep(1)
        assert history.parked == set()
        assert history.answer(first).generation_id == history.answer(second).generation_id == 1

    def test_it_ends_at_the_rebalance_timeout(self, history: History) -> None:
        """[28]"""
        clients = [history.client(rebalance_timeout_ms=2 * DELAY_MS) for _ in range(3)]
        clients[0].enter()
        history.sleep(DELAY_MS - 1)
        clients[1].enter()
        history.sleep(2)
        clients[2].enter()
        history.sleep(DELAY_MS - 2)
        assert len(history.parked) == 3
        history.sleep(1)
        assert history.parked == set()
        assert history.now_ms == START_MS + 2 * DELAY_MS

    def test_newcomers_in_every_window(self, history: History) -> None:
        """With a delay of 3 s and a rebalance timeout of 10 s, the group checks after 3, 6, 9 and 10 s."""
        seen = []
        for second in range(10):
            history.client(rebalance_timeout_ms=10_000).enter()
            history.sleep(999)
            seen.append((second, history.deadline_ms(TimerKey(TimerKind.JOIN, "group"))))
            history.sleep(1)
        assert [ms for _, ms in seen] == [2001, 1001, 1, 2001, 1001, 1, 2001, 1001, 1, 1]
        assert history.parked == set()
        assert len(history.group().members) == 10

    def test_a_member_that_joins_again_does_not_extend_it(self, history: History) -> None:
        client = history.client()
        client.enter()
        history.sleep(1_000)
        token = client.join()
        history.sleep(DELAY_MS - 1_000)
        assert not history.is_parked(token)

    def test_pending_ids_neither_extend_nor_hold_it_up(self, history: History) -> None:
        token = history.client().enter()
        history.client().join()
        history.sleep(DELAY_MS)
        assert not history.is_parked(token)

    def test_without_a_delay_a_member_waits_for_those_that_start_together_with_it(self) -> None:
        history = History(group_initial_rebalance_delay_ms=0)
        first = history.client().enter()
        history.sleep(SHORTEST_DELAY_MS - 1)
        second = history.client().enter()
        history.sleep(SHORTEST_DELAY_MS)
        assert history.is_parked(first)
        history.sleep(1)
        assert history.answer(first).generation_id == history.answer(second).generation_id == 1

    def test_it_is_waited_for_when_all_have_left_again(self, history: History) -> None:
        client = history.client()
        token = client.enter()
        client.leave()
        assert client.answer(token) == JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        history.sleep(DELAY_MS - 1)
        assert history.group().state is State.PREPARING_REBALANCE
        history.sleep(1)
        assert (history.group().state, history.group().generation) == (State.EMPTY, 1)

    def test_it_is_not_cut_short_by_a_pending_id_that_expires(self, history: History) -> None:
        history.client(session_timeout_ms=6_000).join()
        history.sleep(5_000)
        token = history.client().enter()
        history.sleep(1_000)
        assert history.is_parked(token)

    def test_every_refill_of_an_empty_group_waits(self, history: History) -> None:
        (client,) = history.stable(1)
        client.leave()
        token = history.client().enter()
        history.sleep(DELAY_MS - 1)
        assert history.is_parked(token)
        history.sleep(1)
        assert history.answer(token).generation_id == 3

    def test_a_group_that_died_meanwhile_is_left_alone(self, history: History) -> None:
        """[31]"""
        token = history.client().enter()
        history.group().transition_to(State.DEAD, history.now_ms)
        history.sleep(DELAY_MS)
        assert history.is_parked(token)
        assert (history.group().state, history.group().generation) == (State.DEAD, 0)


class TestJoinPhase:
    def test_members_that_do_not_come_back_are_left_out(self, history: History) -> None:
        """[29]"""
        (silent,) = history.stable(1, session_timeout_ms=600_000)
        newcomer = history.client()
        token = newcomer.enter()
        history.sleep(REBALANCE_MS - 1)
        assert history.is_parked(token)
        history.sleep(1)
        answer = newcomer.answer(token)
        assert (answer.generation_id, answer.leader) == (2, newcomer.member_id)
        assert list(history.group().members) == [newcomer.member_id]
        assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_it_lasts_for_the_largest_rebalance_timeout(self, history: History) -> None:
        a = history.client(rebalance_timeout_ms=10_000, session_timeout_ms=600_000)
        b = history.client(rebalance_timeout_ms=40_000, session_timeout_ms=600_000)
        for client in (a, b):
            client.enter()
        history.sleep(2 * DELAY_MS)
        assign([a, b])
        a.join()
        history.sleep(39_999)
        assert history.group().state is State.PREPARING_REBALANCE
        history.sleep(1)
        assert history.group().state is State.COMPLETING_REBALANCE

    def test_static_members_that_nobody_hears_of_are_waited_for(self, history: History) -> None:
        """[30]"""
        clients = history.stable(3, static=True, session_timeout_ms=1_000_000)
        silent = clients.pop()
        silent.leave()
        for _ in range(3):
            history.sleep(REBALANCE_MS)
            assert history.group().state is State.PREPARING_REBALANCE
            assert history.group().generation == 1
        for client in clients:
            client.join()
        assert [client.generation_id for client in clients] == [2, 2]

    @pytest.mark.parametrize("rebalance_timeout_ms", [0, -1, 1])
    def test_static_members_without_a_rebalance_timeout_are_waited_for(
        self, history: History, rebalance_timeout_ms: int
    ) -> None:
        """The join phase is extended in steps, so that time can pass."""
        clients = [
            history.client(group_instance_id=f"i{n}", rebalance_timeout_ms=rebalance_timeout_ms)
            for n in range(2)
        ]
        usual = history.client()
        for client in (usual, *clients):
            client.enter()
        history.sleep(2 * DELAY_MS)
        assign([usual, *clients])
        usual.leave()
        for _ in range(5):
            history.sleep(1_000)
            assert history.group().state is State.PREPARING_REBALANCE
        for client in clients:
            client.join()
        history.sleep(1_000)
        assert clients[0].generation_id == 2

    def test_a_pending_id_that_joins_ends_it(self, history: History) -> None:
        """[32]"""
        leader, follower = history.stable(2)
        newcomer = history.client()
        newcomer.join()
        tokens = [leader.join(), follower.join()]
        assert history.parked == set(tokens)
        newcomer.join()
        assert {client.generation_id for client in (leader, follower, newcomer)} == {2}
        assert len(history.group().members) == 3

    def test_a_pending_id_that_expires_ends_it(self, history: History) -> None:
        """[33]"""
        leader, follower = history.stable(2)
        history.client().join()
        tokens = [leader.join(), follower.join()]
        history.sleep(SESSION_MS - 1)
        assert history.parked == set(tokens)
        history.sleep(1)
        assert history.parked == set()
        assert len(history.group().members) == 2

    def test_a_new_member_is_dropped_after_five_minutes(self, history: History) -> None:
        """[35]"""
        (patient,) = history.stable(1, session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000)
        newcomer = history.client()
        token = newcomer.enter()
        history.sleep(299_999)
        assert history.is_parked(token)
        history.sleep(1)
        assert history.answer(token) == JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        assert list(history.group().members) == [patient.member_id]

    def test_a_new_member_that_has_synced_lives_by_its_session(self, history: History) -> None:
        """[36]"""
        (client,) = history.stable(1, session_timeout_ms=400_000)
        history.sleep(300_000)
        assert list(history.group().members) == [client.member_id]
        history.sleep(100_000)
        assert history.group().members == {}
        assert history.records()[-1] == (
            GroupMetadataKey(group="group"),
            GroupMetadataValue(
                protocol_type="consumer",
                generation=2,
                protocol=None,
                leader=None,
                current_state_timestamp=history.now_ms,
                members=(),
            ),
        )

    @pytest.mark.parametrize("synced", [False, True])
    def test_a_newcomer_that_goes_silent_is_put_out(self, history: History, synced: bool) -> None:
        """[37] [38]"""
        (client,) = history.stable(1)
        newcomer = history.client()
        newcomer.enter()
        client.join()
        if synced:
            assign([client, newcomer])
        for _ in range(2):
            history.sleep(SESSION_MS // 2)
            beat = client.heartbeat()
        assert beat == ErrorCode.REBALANCE_IN_PROGRESS
        assert list(history.group().members) == [client.member_id]

    def test_a_static_member_that_only_sends_heartbeats_is_kept(self, history: History) -> None:
        """[39]"""
        static, other = history.stable(2, static=True, session_timeout_ms=30_000)
        other.protocols = history.client().protocols * 2
        other.join()
        for _ in range(4):
            history.sleep(REBALANCE_MS // 4)
            beat = static.heartbeat()
        assert history.group().generation == 2
        assert len(history.group().members) == 2
        assert beat == ErrorCode.ILLEGAL_GENERATION
        other.sync({other: b""})
        history.sleep(20_000)
        assert other.heartbeat() == ErrorCode.NONE
        history.sleep(10_000)
        assert other.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert list(history.group().members) == [other.member_id]

    def test_a_static_leader_alone_and_silent_is_waited_for(self, history: History) -> None:
        """[40]"""
        leader, follower = history.stable(2, static=True, session_timeout_ms=1_000_000)
        newcomer = history.client()
        token = newcomer.enter()
        history.sleep(REBALANCE_MS)
        answer = newcomer.answer(token)
        assert (answer.leader, len(answer.members)) == (newcomer.member_id, 3)
        follower.leave(member_id="")
        history.sleep(REBALANCE_MS)
        group = history.group()
        assert list(group.members) == [leader.member_id]
        assert (group.state, group.generation) == (State.PREPARING_REBALANCE, 2)

    def test_one_that_joined_leads_when_the_leader_does_not_come(self, history: History) -> None:
        """[110]"""
        leader, a, b = history.stable(3, session_timeout_ms=600_000)
        for client in (a, b):
            client.protocols *= 2
            client.join()
        history.sleep(REBALANCE_MS)
        assert history.group().leader == a.member_id
        assert leader.member_id not in history.group().members

    def test_a_leader_that_comes_stays_leader(self, history: History) -> None:
        """[110]"""
        clients = history.stable(3)
        for client in reversed(clients):
            client.protocols *= 2
            client.join()
        assert history.group().leader == clients[0].member_id

    def test_a_session_that_ends_in_the_join_phase_ends_the_wait(self, history: History) -> None:
        """[94]"""
        silent, _ = history.stable(2)
        newcomer, other = history.client(), _
        token = newcomer.enter()
        other.join()
        history.sleep(SESSION_MS // 2)
        assert silent.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        history.sleep(SESSION_MS - 1)
        assert history.is_parked(token)
        history.sleep(1)
        assert newcomer.answer(token).generation_id == 2
        assert len(history.group().members) == 2

    def test_every_generation_counts_one_more_and_so_does_becoming_empty(self, history: History) -> None:
        """[109]"""
        (client,) = history.stable(1)
        group: ClassicGroup = history.group()
        assert (group.generation, group.protocol_name, group.pending_sync) == (1, "range", set())
        client.join()
        assert (group.generation, group.state) == (2, State.COMPLETING_REBALANCE)
        assert group.pending_sync == {client.member_id}
        client.leave()
        assert (group.generation, group.protocol_name, group.state) == (3, None, State.EMPTY)
        assert group.protocol_type == "consumer"

    def test_a_group_that_empties_while_an_id_is_pending_does_so_on_the_next_tick(
        self, history: History
    ) -> None:
        (client,) = history.stable(1)
        history.client().join()
        client.leave()
        assert history.group().state is State.PREPARING_REBALANCE
        history.sleep(0)
        assert history.group().state is State.EMPTY


class TestReports:
    def test_the_first_generation(self, history: History) -> None:
        (client,) = history.stable(1)
        (report,) = history.rebalances
        member = Who(client.member_id, "client", "/127.0.0.1")
        synced_ms = START_MS + DELAY_MS
        part = Part(
            member,
            after=b"0",
            subscription=b"topics",
            offers=joined_names(["range"]),
            joined_ms=START_MS,
            synced_ms=synced_ms,
            assigned_ms=synced_ms,
        )
        assert report == Rebalance(
            "group",
            Trigger.MEMBER_JOINED,
            (member,),
            reason="",
            detail="",
            began_ms=START_MS,
            joined_ms=synced_ms,
            assigned_ms=synced_ms,
            ended_ms=synced_ms,
            is_complete=True,
            generation=1,
            protocol_type="consumer",
            protocol="range",
            leader=client.member_id,
            votes={"range": 1},
            parts={client.member_id: part},
            delay_ms=DELAY_MS,
        )
        assert str(report) == (
            "group group: generation 1 with 1 member(s) after 3000 ms, because a member joined: client-1"
        )

    def test_each_trigger_is_named(self, history: History) -> None:
        static, a, b = [history.client(group_instance_id="i"), history.client(), history.client()]
        for client in (static, a, b):
            client.enter()
        history.sleep(2 * DELAY_MS)
        assign([static, a, b])
        expected = [(Trigger.MEMBER_JOINED, static.member_id)]

        static.join()
        self.all_join(history, [static, a, b])
        expected.append((Trigger.LEADER_REJOINED, static.member_id))

        a.protocols *= 2
        a.join()
        self.all_join(history, [static, a, b])
        expected.append((Trigger.MEMBER_REJOINED, a.member_id))

        b.leave()
        self.all_join(history, [static, a])
        expected.append((Trigger.MEMBER_LEFT, b.member_id))

        history.sleep(SESSION_MS // 2)
        static.heartbeat()
        history.sleep(SESSION_MS // 2)
        self.all_join(history, [static])
        expected.append((Trigger.SESSION_EXPIRED, a.member_id))

        found = [(each.trigger, each.members[0].member_id) for each in history.rebalances]
        assert found == expected

    @staticmethod
    def all_join(history: History, clients: list[Client]) -> None:
        for client in clients:
            member = history.group().members[client.member_id]
            if member.parked_join is None:
                client.join()
        assign(clients)
        assert history.group().state is State.STABLE

    def test_evicted_members_and_the_reason_of_a_newcomer(self, history: History) -> None:
        (silent,) = history.stable(1, session_timeout_ms=600_000)
        newcomer = history.client()
        newcomer.join()
        newcomer.join(reason="deployed")
        history.sleep(REBALANCE_MS)
        newcomer.generation_id = 2
        newcomer.sync()
        report = history.rebalances[-1]
        assert (report.reason, report.evicted) == ("deployed", (silent.member_id,))
        assert report.joined_ms - report.began_ms == REBALANCE_MS
        assert str(report).endswith("a member joined: client-2 (deployed); evicted client-1")

    def test_evicted_members_are_remembered_while_static_ones_are_waited_for(self, history: History) -> None:
        static = history.client(group_instance_id="i", session_timeout_ms=1_000_000)
        dynamic = [history.client(session_timeout_ms=1_000_000) for _ in range(2)]
        for client in (static, *dynamic):
            client.enter()
        history.sleep(2 * DELAY_MS)
        assign([static, *dynamic])
        dynamic[1].leave()
        history.sleep(REBALANCE_MS)
        assert history.group().state is State.PREPARING_REBALANCE
        static.join()
        static.sync({static: b""})
        assert history.rebalances[-1].evicted == (dynamic[0].member_id,)
