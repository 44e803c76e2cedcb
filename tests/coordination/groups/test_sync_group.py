"""The leader sends assignments, each member gets its own, and members that do not sync are removed."""

import pytest

from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Trigger
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from schemas.messages.sync_group import SyncGroupResponse
from tests.coordination.groups.history import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Client,
    History,
    assign,
    protocols,
)


def _subscription(*owned: int) -> bytes:
    return encode_subscription(ConsumerProtocolSubscription(topics=("t",), owned_partitions=_topics(owned)))


def _assignment(*partitions: int) -> bytes:
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=_topics(partitions)))


def _topics(partitions: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    return (TopicPartition(topic="t", partitions=partitions),) if partitions else ()


@pytest.fixture
def clients(history: History) -> list[Client]:
    """Three members that have joined and not synced; the first leads."""
    clients = [history.client() for _ in range(3)]
    for client in clients:
        client.enter()
    history.sleep(2 * DELAY_MS)
    assert history.group().state is State.COMPLETING_REBALANCE
    return clients


class TestErrors:
    def test_an_unknown_group_and_an_unknown_member(self, history: History) -> None:
        """[73]"""
        stranger = history.client(member_id="stranger", generation_id=1)
        assert stranger.answer(stranger.sync()) == SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        history.stable(1)
        assert stranger.error(stranger.sync()) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_another_generation(self, history: History, clients: list[Client]) -> None:
        """[74]"""
        assert clients[0].error(clients[0].sync(generation_id=2)) == ErrorCode.ILLEGAL_GENERATION
        token = clients[0].sync(generation_id=2, member_id="stranger")
        assert history.answer(token).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
    def test_another_protocol(self, clients: list[Client], fields: dict[str, str]) -> None:
        """[75]"""
        token = clients[0].sync(**fields)
        assert clients[0].answer(token) == SyncGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            protocol_type=None,
            protocol_name=None,
            assignment=b"",
        )

    @pytest.mark.parametrize("fields", [{}, {"protocol_type": "consumer", "protocol_name": "range"}])
    def test_the_right_protocol_or_none(self, clients: list[Client], fields: dict[str, str]) -> None:
        """[76]"""
        leader, follower, _ = clients
        tokens = [follower.sync(**fields), leader.sync({follower: b"f"}, **fields)]
        assert [leader.error(token) for token in tokens] == [ErrorCode.NONE] * 2

    def test_a_pending_id_is_unknown(self, history: History) -> None:
        history.stable(1)
        client = history.client(generation_id=1)
        client.join()
        assert client.error(client.sync()) == ErrorCode.UNKNOWN_MEMBER_ID


class TestAssignments:
    def test_a_follower_after_the_leader(self, history: History, clients: list[Client]) -> None:
        """[77]"""
        leader, follower, _ = clients
        assert leader.answer(leader.sync({leader: b"a", follower: b"b"})).assignment == b"a"
        assert history.group().state is State.STABLE
        assert follower.answer(follower.sync()) == SyncGroupResponse(
            error_code=ErrorCode.NONE, protocol_type="consumer", protocol_name="range", assignment=b"b"
        )

    def test_the_leader_after_a_follower(self, history: History, clients: list[Client]) -> None:
        """[78]"""
        leader, follower, _ = clients
        token = follower.sync()
        assert history.is_parked(token)
        assert leader.answer(leader.sync({leader: b"a", follower: b"b"})).assignment == b"a"
        assert follower.answer(token).assignment == b"b"

    def test_a_new_member_gets_nothing_at_once_while_another_gives_partitions_up(
        self, history: History
    ) -> None:
        """A consumer calls its application with each assignment, also of a generation that passes at once."""
        (old,) = history.stable(1)
        old.protocols = protocols("range", metadata=_subscription(0, 1))
        new = history.client(protocols=protocols("range", metadata=_subscription()))
        for client in (new, old):
            client.enter()
        token = new.sync()
        old.sync({old: _assignment(0), new: _assignment()})
        assert new.answer(token).assignment == _assignment()
        waits = new.wait()
        old.join()
        assert new.error(waits) == ErrorCode.REBALANCE_IN_PROGRESS

    def test_they_are_durable_with_the_generation(self, history: History, clients: list[Client]) -> None:
        leader, follower, third = clients
        leader.sync({leader: b"a", follower: b"b"})

        def member(client: Client, assignment: bytes) -> MemberMetadata:
            return MemberMetadata(
                member_id=client.member_id,
                group_instance_id=None,
                client_id="client",
                client_host="/127.0.0.1",
                rebalance_timeout=REBALANCE_MS,
                session_timeout=SESSION_MS,
                subscription=b"topics",
                assignment=assignment,
            )

        assert history.records()[1:] == [
            (
                GroupMetadataKey(group="group"),
                GroupMetadataValue(
                    protocol_type="consumer",
                    generation=1,
                    protocol="range",
                    leader=leader.member_id,
                    current_state_timestamp=history.now_ms,
                    members=(member(leader, b"a"), member(follower, b"b"), member(third, b"")),
                ),
            )
        ]

    def test_a_member_that_the_leader_does_not_name_gets_nothing(
        self, history: History, clients: list[Client]
    ) -> None:
        """[79]"""
        tokens = [client.sync({} if client is clients[0] else None) for client in clients]
        assert [history.answer(token).assignment for token in tokens] == [b"", b"", b""]
        assert history.group().state is State.STABLE

    def test_what_the_last_leader_gave_does_not_count(self, history: History) -> None:
        leader, follower = history.stable(2)
        leader.join()
        follower.join()
        assert leader.answer(leader.sync()).assignment == b""
        assert follower.answer(follower.sync()).assignment == b""

    def test_strangers_are_ignored(self, history: History, clients: list[Client]) -> None:
        leader = clients[0]
        token = leader.sync({history.client(member_id="stranger"): b"x", leader: b"a"})
        assert leader.answer(token).assignment == b"a"
        assert "stranger" not in history.group().members

    def test_assignments_of_a_follower_and_late_ones_are_ignored(
        self, history: History, clients: list[Client]
    ) -> None:
        leader, follower, third = clients
        token = follower.sync({follower: b"all"})
        leader.sync({follower: b"b"})
        assert follower.answer(token).assignment == b"b"
        records = len(history.journal)
        assert leader.answer(leader.sync({leader: b"all"})).assignment == b""
        assert third.answer(third.sync({third: b"all"})).assignment == b""
        assert len(history.journal) == records

    def test_the_older_of_two_parked_syncs_is_sent_back(self, clients: list[Client]) -> None:
        leader, follower, _ = clients
        first, second = follower.sync(), follower.sync()
        assert follower.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
        leader.sync({follower: b"b"})
        assert follower.answer(second).assignment == b"b"

    def test_a_sync_in_a_stable_group_is_no_heartbeat(self, history: History) -> None:
        """Up to Kafka 3 it counted as one."""
        (client,) = history.stable(1)
        history.sleep(SESSION_MS - 1)
        assert client.answer(client.sync()).error_code == ErrorCode.NONE
        history.sleep(1)
        assert client.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


class TestInterruptions:
    def test_the_leader_is_put_out(self, history: History, clients: list[Client]) -> None:
        """[81]"""
        _, *followers = clients
        tokens = [follower.sync() for follower in followers]
        history.sleep(SESSION_MS)
        errors = [history.answer(token).error_code for token in tokens]
        assert errors == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        assert history.group().state is State.PREPARING_REBALANCE
        assert list(history.group().members) == [follower.member_id for follower in followers]
        history.sleep(SESSION_MS - 1)
        assert {follower.heartbeat() for follower in followers} == {ErrorCode.REBALANCE_IN_PROGRESS}

    def test_a_parked_member_outlives_its_session(self, history: History, clients: list[Client]) -> None:
        leader, follower, third = clients
        token = follower.sync()
        for _ in range(5):
            history.sleep(SESSION_MS - 1)
            leader.heartbeat()
            third.heartbeat()
        assert history.is_parked(token)
        leader.sync({follower: b"b"})
        history.sleep(SESSION_MS - 1)
        assert follower.heartbeat() == ErrorCode.NONE

    def test_a_member_leaves(self, history: History, clients: list[Client]) -> None:
        """Apache Kafka never answers the parked SyncGroup of the member that left."""
        follower, third = clients[1:]
        tokens = [follower.sync(), third.sync()]
        third.leave()
        assert [history.answer(token).error_code for token in tokens] == [
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]

    def test_assignments_of_an_interrupted_generation_are_forgotten(self, history: History) -> None:
        leader, follower = history.stable(2)
        follower.protocols = protocols("range", metadata=b"other")
        leader.join()
        follower.join()
        assert history.group().members[leader.member_id].assignment == b"0", "as of the last generation"
        history.client().enter()
        assert history.group().members[leader.member_id].assignment == b""


class TestSyncDeadline:
    def test_nobody_syncs(self, history: History, clients: list[Client]) -> None:
        """[82]"""
        beats = self.beat(history, clients, REBALANCE_MS)
        assert beats == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
        assert (history.group().state, history.group().generation) == (State.EMPTY, 2)
        assert history.records()[-1].value == GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol=None,
            leader=None,
            current_state_timestamp=history.now_ms,
            members=(),
        )

    def test_only_the_leader_syncs(self, history: History, clients: list[Client]) -> None:
        """[83]"""
        clients[0].sync()
        beats = self.beat(history, clients, REBALANCE_MS)
        assert beats == [ErrorCode.REBALANCE_IN_PROGRESS] + [ErrorCode.UNKNOWN_MEMBER_ID] * 2

    def test_all_but_the_leader_sync(self, history: History, clients: list[Client]) -> None:
        """[84]"""
        leader, *followers = clients
        tokens = [follower.sync() for follower in followers]
        self.beat(history, [leader], REBALANCE_MS - 1)
        assert history.parked == set(tokens)
        history.sleep(1)
        assert {history.answer(token).error_code for token in tokens} == {ErrorCode.REBALANCE_IN_PROGRESS}
        assert leader.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert history.group().leader == followers[0].member_id
        assert history.group().rebalance is not None
        assert history.group().rebalance.trigger is Trigger.SYNC_EXPIRED

    def test_all_sync(self, history: History, clients: list[Client]) -> None:
        """[85]"""
        assign(clients)
        assert self.beat(history, clients, REBALANCE_MS) == [ErrorCode.NONE] * 3
        assert history.group().generation == 1

    def test_members_that_have_yet_to_sync(self, history: History, clients: list[Client]) -> None:
        """[113]"""
        leader, follower, third = clients
        group = history.group()
        assert group.pending_sync == {client.member_id for client in clients}
        follower.sync()
        assert group.pending_sync == {leader.member_id, third.member_id}
        third.leave()
        assert group.pending_sync == set(), "a join phase began"
        leader.join()
        follower.join()
        assert group.pending_sync == {leader.member_id, follower.member_id}

    @staticmethod
    def beat(history: History, clients: list[Client], ms: int) -> list[ErrorCode]:
        """Send heartbeats for all members for this time; return the last answers."""
        end_ms = history.now_ms + ms
        while history.now_ms < end_ms:
            history.sleep(min(SESSION_MS // 2, end_ms - history.now_ms))
            beats = [client.heartbeat() for client in clients]
        return beats
