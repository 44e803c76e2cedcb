"""The runtime around the coordinator: waiting for the journal, failed appends, deadlines."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.configs.config import Config
from kshim.coordination import group_runtime as group_runtime_module
from kshim.coordination import leads
from kshim.coordination.alarm import LONGEST_TURN_MS
from kshim.coordination.decision import Decision
from kshim.coordination.group_runtime import new_coordinator, new_member_id
from kshim.coordination.groups import shard_offsets
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from kshim.coordination.loading import Leader
from kshim.coordination.shards import partition_for
from kshim.storage.interfaces import JournalBatch, StorageError, StorageFull
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitKey, encode_key
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import PENDING, context, later
from tests.coordination.groups.history import protocols
from tests.coordination.held_runtime import (
    EXPIRY_S,
    MEMBER,
    NONSENSE,
    RETENTION_S,
    SESSION_MS,
    START_S,
    Server,
    error,
    offset,
    result,
)

SHARD = partition_for("a", 2)


@pytest.fixture
def server() -> Server:
    return Server()


class TestProof:
    """If another process may lead a shard by now, nothing is answered before it is sure that none does."""

    def test_a_reply_without_records_waits_for_an_append_of_none(self, server: Server) -> None:
        server.may_answer = False
        answers = [server.fetch(), server.heartbeat()]
        assert [result(answer) for answer in answers] == [PENDING] * 2
        ((_, entry, _),) = server.journal.writes
        assert entry == JournalBatch(())
        server.journal.release()
        assert offset(answers[0]) == -1
        assert error(answers[1]) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_reply_behind_records_needs_nothing_more(self, server: Server) -> None:
        server.may_answer = False
        server.commit()
        answer = server.fetch()
        assert len(server.journal.writes) == 1
        server.journal.release()
        assert offset(answer) == 5

    def test_what_time_brings_waits_as_well(self, server: Server) -> None:
        server.journal.holds = False
        result(server.join())
        joining = server.join("test-1")
        server.journal.holds, server.may_answer = True, False
        server.clock.advance(3)
        assert result(joining) is PENDING
        server.journal.release()
        assert result(joining).error_code == ErrorCode.NONE

    def test_without_the_proof_the_shard_is_loaded_again(self, server: Server) -> None:
        server.may_answer = False
        answer = server.fetch()
        server.journal.fail(StorageError("somebody else leads"))
        assert error(answer) == ErrorCode.NOT_COORDINATOR


PRODUCER = (7, 0)
MARKER = EndTxnMarker(*PRODUCER, True, 0, 0)


class TestMarkersOfOthers:
    """In front of a cluster, the cluster writes the ends of transactions."""

    def pending(self, server: Server) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="a",
            producer_id=7,
            producer_epoch=0,
            topics=(
                TxnOffsetCommitRequestTopic(
                    name="topic", partitions=(TxnOffsetCommitRequestPartition(committed_offset=6),)
                ),
            ),
        )
        server.runtime.submit(context(3), request)

    def apply(self, server: Server, keys: list[bytes] | None) -> bool:
        """keys: what is to be written as it counts then."""
        self.seen: list[int] = []

        def ends() -> list[bytes] | None:
            self.seen.append(len(server.journal.writes))
            return keys

        return server.runtime.apply_marker(SHARD, MARKER, ends)

    def test_what_was_decided_before_is_appended_before(self, server: Server) -> None:
        self.pending(server)
        assert server.journal.writes == []
        assert self.apply(server, [])
        assert self.seen == [1]
        assert server.journal.writes[0][1].producer == PRODUCER

    def test_what_counts_then_is_written(self, server: Server) -> None:
        self.pending(server)
        server.runtime.end_turn()
        server.journal.release()
        ((key, _),) = server.journal.durable[SHARD][0].records
        assert offset(server.fetch()) == -1
        assert self.apply(server, [key])
        server.runtime.end_turn()
        (written,) = server.journal.writes
        assert isinstance(written[1], JournalBatch)
        assert [each[0] for each in written[1].records] == [key]
        server.journal.release()
        assert offset(server.fetch()) == 6

    def test_an_offset_that_there_is_no_more_is_not_written(self, server: Server) -> None:
        key = encode_key(OffsetCommitKey(group="a", topic="topic", partition=0))
        assert self.apply(server, [key])
        server.runtime.end_turn()
        assert server.journal.writes == []

    def test_nothing_happens_where_the_tenure_is_over(self, server: Server) -> None:
        self.pending(server)
        self.apply(server, None)
        server.journal.release()
        assert offset(server.fetch()) == -1

    def test_of_a_shard_that_is_loading_it_is_applied_afterwards(self, server: Server) -> None:
        server.runtime.unload(SHARD)
        assert not self.apply(server, [])
        assert self.seen == [], "somebody else leads it"
        self.pending(server)
        loader = server.runtime.shards._loader
        loader.add = lambda *_: None
        server.runtime.load(SHARD, Leader(leader_epoch=1))
        assert not self.apply(server, [])
        loading = server.runtime.shards.loading[SHARD]
        assert self.seen == []
        assert server.runtime.shards.go_on_loading(loading, lambda: False)
        assert self.seen == [0]


class TestPreparation:
    """A shard may be served only once something else is known."""

    @pytest.fixture
    def preparing(self, server: Server) -> list[Deferred[None]]:
        """For each time that the shard is loaded: fires when it may be served."""
        begun: list[Deferred[None]] = []

        def prepare(_: int) -> Deferred[None]:
            begun.append(Deferred())
            return begun[-1]

        server.runtime.unload(SHARD)
        server.runtime.shards.prepare = prepare
        server.runtime.load(SHARD, Leader(leader_epoch=1))
        return begun

    def test_it_is_served_afterwards(self, server: Server, preparing: list[Deferred[None]]) -> None:
        assert server.fetch().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        preparing[0].callback(None)
        assert offset(server.fetch()) == -1

    def test_its_timers_go_on_then(self, server: Server, preparing: list[Deferred[None]]) -> None:
        preparing[0].callback(None)
        assert server.next_call_s() == server.clock.seconds() + EXPIRY_S

    def test_what_is_decided_everywhere_waits_for_it(
        self, server: Server, preparing: list[Deferred[None]]
    ) -> None:
        seen: list[int] = []

        def decide(shard: int, now_ms: int) -> Decision:
            seen.append(shard)
            return Decision(shard)

        server.runtime.decide_everywhere(decide)
        assert SHARD not in seen
        preparing[0].callback(None)
        assert SHARD in seen

    def test_it_may_be_given_up_before(self, server: Server, preparing: list[Deferred[None]]) -> None:
        server.runtime.unload(SHARD)
        assert preparing[0].called, "nobody waits for it any more"
        assert server.fetch().error_code == ErrorCode.NOT_COORDINATOR
        server.runtime.load(SHARD, Leader(leader_epoch=2))
        assert len(preparing) == 2
        assert server.fetch().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        preparing[1].callback(None)
        assert offset(server.fetch()) == -1

    def test_a_fault_in_it_is_logged_and_the_shard_is_served(
        self, server: Server, preparing: list[Deferred[None]], caplog: pytest.LogCaptureFixture
    ) -> None:
        preparing[0].errback(ValueError("a mistake"))
        assert "internal error" in caplog.text
        assert offset(server.fetch()) == -1


class TestDurability:
    def test_a_reply_waits_for_its_record(self, server: Server) -> None:
        answer = server.commit()
        assert result(answer) is PENDING
        server.journal.release()
        assert error(answer) == ErrorCode.NONE

    def test_a_later_reply_of_the_shard_waits_too(self, server: Server) -> None:
        server.commit()
        answers = [server.fetch(), server.heartbeat(), server.submit(DescribeGroup("a"))]
        assert [result(answer) for answer in answers] == [PENDING] * 3
        server.journal.release()
        assert offset(answers[0]) == 5
        assert PENDING not in [result(answer) for answer in answers]

    def test_each_waits_for_the_records_before_it_only(self, server: Server) -> None:
        first, between, second = server.commit(offset=1), server.fetch(), server.commit(offset=2)
        server.journal.release()
        assert error(first) == ErrorCode.NONE
        assert offset(between) == 1
        assert result(second) is PENDING
        server.journal.release()
        assert error(second) == ErrorCode.NONE

    def test_another_shard_does_not_wait(self, server: Server) -> None:
        server.commit("a")
        assert offset(server.fetch("b")) == -1
        answer = server.commit("b")
        server.journal.release(server.journal.writes[1][0])
        assert error(answer) == ErrorCode.NONE

    def test_with_nothing_under_way_a_heartbeat_is_answered_at_once(self, server: Server) -> None:
        server.stable()
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)

    def test_the_members_of_a_generation_are_answered_when_it_is_durable(self, server: Server) -> None:
        server.journal.holds = False
        result(server.join())
        joining = server.join("test-1")
        server.clock.advance(3)
        assert result(joining).generation_id == 1
        server.journal.holds = True
        syncing = server.sync()
        assert result(syncing) is PENDING
        server.journal.release()
        assert result(syncing).assignment == b"all"

    def test_a_batch_of_records_is_one_append(self, server: Server) -> None:
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=n, committed_offset=n) for n in range(9)
        )
        topic = OffsetCommitRequestTopic(name="topic", partitions=partitions)
        server.submit(OffsetCommitRequest(group_id="a", topics=(topic,)))
        ((_, batch, _),) = server.journal.writes
        assert isinstance(batch, JournalBatch)
        assert len(batch.records) == 9

    def test_what_is_decided_in_one_turn_is_one_append(self, server: Server) -> None:
        answers = [server.begin_commit(offset=n) for n in range(3)]
        behind = later(server.runtime.submit(context(9), OffsetFetchRequestGroup(group_id="a", topics=None)))
        assert server.journal.writes == []
        server.clock.advance(0)
        ((_, batch, _),) = server.journal.writes
        assert isinstance(batch, JournalBatch)
        assert len(batch.records) == 3
        assert [result(answer) for answer in (*answers, behind)] == [PENDING] * 4
        server.journal.release()
        assert [error(answer) for answer in answers] == [ErrorCode.NONE] * 3
        assert offset(behind) == 2

    def test_what_is_large_is_several(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(leads, "MOST_BYTES", 50)
        answers = [server.begin_commit(offset=n) for n in range(4)]
        server.clock.advance(0)
        assert [len(batch.records) for _, batch, _ in server.journal.writes] == [2, 2]
        server.journal.release()
        assert [result(answer) is PENDING for answer in answers] == [False, False, True, True]

    def test_what_a_turn_has_gathered_is_void_when_the_shard_moves(self, server: Server) -> None:
        answer = server.begin_commit()
        server.runtime.unload(server.runtime.shard_for("a"))
        server.clock.advance(0)
        assert error(answer) == ErrorCode.NOT_COORDINATOR
        assert server.journal.writes == []

    def test_what_is_durable_is_known_after_a_restart(self, server: Server) -> None:
        server.stable()
        server.journal.holds = False
        server.commit("b", offset=7)
        server.start()
        assert result(server.heartbeat()) == HeartbeatResponse(error_code=ErrorCode.NONE)
        assert offset(server.fetch("b")) == 7

    def test_a_deleted_topic_s_offsets_go_from_the_journal(self, server: Server) -> None:
        server.journal.holds = False
        for group_id in "ab":
            server.commit(group_id)
        later(server.runtime.topics_deleted({"topic"}))
        server.runtime.end_turn()
        server.start()
        assert [offset(server.fetch(group_id)) for group_id in "ab"] == [-1, -1]

    def test_a_deleted_topic_s_offsets_go_in_steps(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also in a shard that is loaded again between two of them."""
        monkeypatch.setattr(shard_offsets, "MOST_DELETED", 1)
        server.journal.holds = False
        groups = [f"g{number}" for number in range(8)]
        for group_id in groups:
            server.commit(group_id)
        turns: list[Deferred[None]] = []

        async def pause(cost_us: int) -> None:
            turns.append(Deferred())
            await turns[-1]

        done = later(server.runtime.topics_deleted({"topic"}, pause))
        given_up = server.runtime.shard_for("g7")
        while turns:
            assert not done.called
            server.runtime.end_turn()
            if given_up is not None and offset(server.fetch("g7")) == -1:
                server.runtime.unload(given_up)
                server.runtime.load(given_up, Leader(leader_epoch=1))
                given_up = None
            turns.pop().callback(None)
        assert done.called
        server.runtime.end_turn()
        assert [offset(server.fetch(group_id)) for group_id in groups] == [-1] * 8

    def test_many_deleted_offsets_do_not_queue_before_the_commits_of_others(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard_offsets, "MOST_DELETED", 1)
        monkeypatch.setattr(group_runtime_module, "FORGET_RECORDS", 1)
        server.journal.holds = False
        groups = [f"g{number}" for number in range(8)]
        for group_id in groups:
            server.commit(group_id)
        server.journal.holds = True
        done = later(server.runtime.topics_deleted({"topic"}))
        while not done.called:
            server.runtime.end_turn()
            assert len(server.journal.writes) == 1
            server.journal.release()
        assert [offset(server.fetch(group_id)) for group_id in groups] == [-1] * 8


class TestFailedAppend:
    def test_the_caller_is_told_and_nothing_of_it_is_kept(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        """[80] [87]"""
        answer, behind = server.commit(), server.fetch()
        shard = server.journal.writes[0][0]
        with caplog.at_level(logging.ERROR):
            server.journal.fail()
        assert error(answer) == ErrorCode.NOT_COORDINATOR
        assert result(behind).error_code == ErrorCode.NOT_COORDINATOR
        assert [record.getMessage() for record in caplog.records] == [
            f"__consumer_offsets-{shard}: an append failed, so the shard is loaded again: the disk is full"
        ]
        assert offset(server.fetch()) == -1

    def test_the_shard_is_served_again_at_once(self, server: Server) -> None:
        server.journal.holds = False
        server.commit(offset=1)
        server.journal.holds = True
        server.commit(offset=2)
        server.journal.fail()
        assert offset(server.fetch()) == 1
        answer = server.commit(offset=3)
        server.journal.release()
        assert error(answer) == ErrorCode.NONE
        assert offset(server.fetch()) == 3

    def test_all_that_were_under_way_are_refused_once(self, server: Server) -> None:
        answers = [server.commit(offset=n) for n in range(5)]
        server.journal.fail()
        assert [error(answer) for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 5

    def test_parked_requests_are_refused_in_their_own_words(self, server: Server) -> None:
        """[80]"""
        server.stable()
        newcomer = server.join(version=3)
        assert result(newcomer) is PENDING
        other = server.commit(**MEMBER)
        server.journal.fail()
        assert error(other) == ErrorCode.NOT_COORDINATOR
        assert result(newcomer) == JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id="test-2")
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE), "as of the last record"

    def test_a_leader_s_sync_that_fails_is_refused_and_its_generation_forgotten(self, server: Server) -> None:
        """[80]"""
        server.journal.holds = False
        result(server.join())
        joining = server.join("test-1")
        server.clock.advance(3)
        server.journal.holds = True
        assert result(joining).generation_id == 1
        syncing = server.sync()
        server.journal.fail()
        assert result(syncing) == SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)

    def test_the_creation_of_a_group_that_fails(self, server: Server) -> None:
        """[3]"""
        answer = server.join(version=3)
        server.journal.fail()
        assert result(answer).error_code == ErrorCode.NOT_COORDINATOR

    @pytest.mark.parametrize("why", [StorageError("no disk"), StorageFull("the disk is full")])
    def test_every_request_that_writes(self, server: Server, why: StorageError) -> None:
        """[87]: whatever is wrong with the journal, clients look for another coordinator."""
        server.journal.holds = False
        server.commit("a")
        server.journal.holds = True
        partition = OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequestTopic(name="topic", partitions=(partition,))
        answers = [
            server.commit("a"),
            server.submit(OffsetDeleteRequest(group_id="a", topics=(topic,)), 0),
            server.submit(DeleteGroup("a"), 2),
            server.join(version=3),
        ]
        assert [result(answer) for answer in answers] == [PENDING] * 4
        server.journal.fail(why)
        assert [error(answer) for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 4
        assert offset(server.fetch()) == 5

    @pytest.mark.parametrize("names", [("range",), ("range", "sticky")])
    def test_a_static_member_s_return(self, server: Server, names: tuple[str, ...]) -> None:
        """[53] [64]: it goes on under its old id; the new one was never known."""
        server.journal.holds = False
        first = server.join(group_instance_id="i")
        server.clock.advance(3)
        assert result(first).member_id == "i-1"
        assert result(server.sync("i-1")).error_code == ErrorCode.NONE
        server.journal.holds = True
        again = server.join(group_instance_id="i", protocols=protocols(*names), session_timeout_ms=6_000)
        assert result(again) is PENDING
        server.journal.fail()
        assert result(again) == JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id="")
        assert error(server.heartbeat(member_id="i-1")) == ErrorCode.NONE
        assert error(server.heartbeat(member_id="i-2")) == ErrorCode.UNKNOWN_MEMBER_ID
        server.clock.advance(SESSION_MS / 1000 - 1)
        assert error(server.heartbeat(member_id="i-1")) == ErrorCode.NONE, "its session is the old one"

    def test_a_record_that_cannot_be_written(self, server: Server) -> None:
        """Only the request that wrote it fails."""
        topic = OffsetCommitRequestTopic(
            name="\ud800", partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        )
        server.journal.holds = False
        server.commit(offset=4)
        server.journal.holds = True
        before = server.commit(offset=5)
        answer = server.submit(OffsetCommitRequest(group_id="a", topics=(topic,)))
        assert error(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
        server.journal.release()
        assert (error(before), offset(server.fetch())) == (ErrorCode.NONE, 5)

    def test_other_shards_go_on(self, server: Server) -> None:
        server.commit("a")
        other = server.commit("b")
        held = server.journal.writes.pop(1)
        server.journal.fail()
        server.journal.writes.append(held)
        server.journal.release()
        assert error(other) == ErrorCode.NONE

    def test_sessions_go_on_after_it(self, server: Server) -> None:
        """The members in the journal have a deadline again, and are removed after it."""
        server.stable()
        server.commit("a", **MEMBER)
        server.journal.fail()
        server.journal.holds = False
        server.clock.advance(SESSION_MS / 1000)
        assert result(server.submit(DescribeGroup("a"), 6)).group_state == "Empty"

    def test_a_member_that_comes_back_to_life_has_a_deadline(self, server: Server) -> None:
        """Its LeaveGroup could not be written."""
        server.stable()
        identity = MemberIdentity(member_id="test-1")
        leaving = server.submit(LeaveGroupRequest(group_id="a", members=(identity,)), 5)
        server.clock.pump([SESSION_MS / 1000, 60])
        assert server.next_call_s() == START_S + EXPIRY_S
        server.journal.fail()
        assert result(leaving).error_code == ErrorCode.NOT_COORDINATOR
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)
        assert server.next_call_s() <= server.clock.seconds() + SESSION_MS / 1000

    def test_a_shard_that_cannot_be_loaded_again_is_led_no_longer(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.commit("a")
        shard = server.journal.writes[0][0]
        server.journal.durable[shard] = [NONSENSE]
        with caplog.at_level(logging.ERROR):
            server.journal.fail()
        assert "cannot be loaded" in caplog.text
        assert error(server.commit("a")) == ErrorCode.NOT_COORDINATOR
        assert server.heartbeat("a") == HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        assert server.runtime.list_groups(context(5), ListGroupsRequest()).error_code == ErrorCode.NONE
        assert offset(server.fetch("b")) == -1


class TestLoading:
    def test_corrupt_records_stop_the_start(self, server: Server) -> None:
        """[161]"""
        server.journal.durable[0] = [NONSENSE]
        with pytest.raises(StorageError, match="__consumer_offsets-0 holds a corrupt record"):
            server.start()

    def test_unknown_kinds_of_keys_are_skipped(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        """[161]"""
        server.journal.holds = False
        server.commit("a", offset=7)
        for entries in server.journal.durable.values():
            entries.insert(0, JournalBatch([(b"\x00\x09 something", b"newer")]))
        with caplog.at_level(logging.WARNING):
            server.start()
        assert "skipped" in caplog.text
        assert offset(server.fetch("a")) == 7


class TestTime:
    def test_one_call_is_scheduled_for_the_next_deadline(self, server: Server) -> None:
        assert server.next_call_s() == START_S + EXPIRY_S
        server.stable()
        assert server.next_call_s() == pytest.approx(server.clock.seconds() + SESSION_MS / 1000)

    def test_an_earlier_deadline_moves_it(self, server: Server) -> None:
        server.stable()
        server.clock.advance(1)
        joining = server.join(version=3)
        assert result(joining) is PENDING
        assert server.next_call_s() <= server.clock.seconds() + 9

    def test_a_deadline_that_comes_with_an_answer_at_once_moves_it_too(self, server: Server) -> None:
        server.commit()
        server.journal.release()
        assert server.next_call_s() == START_S + EXPIRY_S
        answer = server.join()
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert server.next_call_s() == START_S + SESSION_MS / 1000

    def test_heartbeats_schedule_nothing(self, server: Server) -> None:
        server.stable()
        (call,) = server.clock.getDelayedCalls()
        for _ in range(5):
            server.clock.advance(1)
            server.heartbeat()
        assert server.clock.getDelayedCalls() == [call]
        server.clock.advance(9)
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)
        server.journal.holds = False
        server.clock.advance(SESSION_MS / 1000)
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)

    def test_what_comes_due_waits_for_the_journal_as_well(self, server: Server) -> None:
        server.stable()
        server.clock.advance(SESSION_MS / 1000)
        answer = server.heartbeat()
        assert result(answer) is PENDING, "the empty group is not durable yet"
        server.journal.release()
        assert error(answer) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_what_has_expired_is_gone_from_the_journal_too_and_told(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.journal.holds = False
        result(server.commit("a"))
        with caplog.at_level(logging.INFO, "kshim.coordination"):
            server.clock.advance(RETENTION_S)
        assert [record.getMessage() for record in caplog.records] == [
            "group a: 1 offset(s) expired; deleted, for it has no members and no offsets"
        ]
        assert result(server.fetch("a")).topics[0].partitions[0].committed_offset == -1
        server.start()
        assert server.runtime.list_groups(context(5), ListGroupsRequest()).groups == ()

    def test_much_that_is_due_makes_way_for_requests(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Expiry in one shard takes long; the other shard's turn comes after the waiting requests."""
        coordinator = server.runtime._groups
        replay = coordinator.replay
        seen: list[int] = []

        def request() -> None:
            seen.append(len(server.runtime.list_groups(context(5), ListGroupsRequest()).groups))

        def slowly(*arguments: Any, **more: Any) -> Any:
            server.clock.rightNow += 2 * LONGEST_TURN_MS / 1000
            server.clock.callLater(0, request)
            return replay(*arguments, **more)

        server.journal.holds = False
        for group_id in ("a", "b"):
            result(server.commit(group_id))
        monkeypatch.setattr(coordinator, "replay", slowly)
        server.clock.advance(RETENTION_S)
        assert seen == [1, 0]

    def test_a_completed_rebalance_is_told_in_the_log(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "kshim.coordination"):
            server.stable()
        assert [record.getMessage() for record in caplog.records] == [
            "group a: generation 1 with 1 member(s) after 3000 ms, because a member joined: test-1"
        ]


class TestStop:
    def test_parked_and_unsettled_requests_are_answered(self, server: Server) -> None:
        server.stable()
        joining = server.join(version=3)
        committing = server.commit("b")
        server.runtime.stop()
        assert result(joining).error_code == ErrorCode.NOT_COORDINATOR
        assert error(committing) == ErrorCode.NOT_COORDINATOR
        assert server.clock.getDelayedCalls() == []

    def test_what_comes_later_is_refused(self, server: Server) -> None:
        committing = server.commit("a")
        server.runtime.stop()
        assert error(server.commit("a")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert server.submit(DeleteGroup("a"), 2).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        server.journal.release()
        assert error(committing) == ErrorCode.NOT_COORDINATOR


def test_an_answer_may_cause_the_next_request(server: Server) -> None:
    """A connection hands in its next request as soon as a reply has left."""
    second: list[Any] = []
    server.commit(offset=1).addCallback(lambda _: second.append(server.commit(offset=2)))
    between = server.fetch()
    server.journal.release()
    assert offset(between) == 1
    assert result(second[0]) is PENDING
    server.journal.release()
    assert error(second[0]) == ErrorCode.NONE
    assert offset(server.fetch()) == 2


@pytest.mark.parametrize("api_key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
def test_a_parked_request_is_kept_without_its_content(server: Server, api_key: ApiKey) -> None:
    """The parts that a refusal needs remain."""
    server.journal.holds = False
    content = JoinGroupRequestProtocol(name="range", metadata=bytes(1_000))
    parked = server.join(group_instance_id="i", protocols=(content,))
    if api_key is ApiKey.SYNC_GROUP:
        server.clock.advance(3)
        plan = (SyncGroupRequestAssignment(member_id="test-1", assignment=bytes(1_000)),)
        request = SyncGroupRequest(group_id="a", generation_id=1, member_id="i-1", assignments=plan)
        server.journal.holds = True
        parked = server.submit(request)
    (waiting,) = server.runtime._waiting.values()
    assert waiting.request.member_id == ("" if api_key is ApiKey.JOIN_GROUP else "i-1")
    assert bytes(1_000) not in str(waiting.request).encode()
    assert "range" not in str(waiting.request)
    server.runtime.stop()
    assert error(parked) == ErrorCode.NOT_COORDINATOR


def test_member_ids_are_kafka_s() -> None:
    first, second = new_member_id("client"), new_member_id("client")
    assert first != second
    assert first.startswith("client-")
    assert len(first) == len("client-") + 36


def test_the_limits_are_those_of_the_configuration() -> None:
    config = Config(
        group_min_session_timeout_ms=7_000,
        group_max_size=3,
        offset_metadata_max_bytes=10,
        offsets_retention_minutes=5,
        offsets_retention_check_interval_ms=6,
    )
    settings = new_coordinator(config, 50).settings
    assert (settings.offsets_retention_minutes, settings.offsets_retention_check_interval_ms) == (5, 6)
    assert (settings.group_min_session_timeout_ms, settings.group_max_size) == (7_000, 3)
    assert settings.offset_metadata_max_bytes == 10
    assert settings.group_initial_rebalance_delay_ms == config.group_initial_rebalance_delay_ms
