"""Shards at run time: who leads them, and the answers while they are loaded, given up or moved.

And how transactions end in them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from kshim.coordination.alarm import LONGEST_TURN_MS
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, StableOffsetFetch
from kshim.coordination.loading import Leader
from kshim.storage.interfaces import JournalBatch, StorageError
from schemas.error_code import ErrorCode
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.describe_groups import DescribedGroup
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.join_group import JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from schemas.messages.sync_group import SyncGroupResponse
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import PENDING, context, later
from tests.coordination.held_runtime import MEMBER, NONSENSE, Server, error, offset, result

P = 7


@pytest.fixture
def server() -> Server:
    return Server()


def shard_of(server: Server, group_id: str = "a") -> int:
    return server.runtime.shard_for(group_id)


def txn_commit(server: Server, committed: int, group_id: str = "a") -> Any:
    return server.submit(txn_commit_request(committed, group_id), 5)


def txn_commit_request(committed: int, group_id: str = "a") -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=committed)
    topic = TxnOffsetCommitRequestTopic(name="topic", partitions=(partition,))
    return TxnOffsetCommitRequest(
        transactional_id="t", group_id=group_id, producer_id=P, producer_epoch=0, topics=(topic,)
    )


def end(server: Server, *, committed: bool = True, epoch: int = 0, group_id: str = "a") -> Any:
    marker = EndTxnMarker(P, epoch, committed, 0, 1)
    written = later(server.runtime.write_marker(shard_of(server, group_id), marker))
    server.runtime.end_turn()
    return written


def every_error(server: Server, group_id: str = "a") -> list[ErrorCode]:
    """The error that each kind of request is answered, from its own place in the response."""
    identity = MemberIdentity(member_id="m")
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    answers = [
        (server.join("m"), JoinGroupResponse),
        (server.sync(), SyncGroupResponse),
        (server.heartbeat(group_id), HeartbeatResponse),
        (server.submit(LeaveGroupRequest(group_id=group_id, members=(identity,)), 5), LeaveGroupResponse),
        (server.submit(group), OffsetFetchResponseGroup),
        (server.submit(StableOffsetFetch(group)), OffsetFetchResponseGroup),
        (server.submit(OffsetDeleteRequest(group_id=group_id), 0), OffsetDeleteResponse),
        (server.submit(DescribeGroup(group_id), 6), DescribedGroup),
        (server.submit(DeleteGroup(group_id), 2), DeletableGroupResult),
    ]
    assert [type(answer) for answer, _ in answers] == [kind for _, kind in answers]
    return [
        *(ErrorCode(answer.error_code) for answer, _ in answers),
        error(server.commit(group_id)),
        error(txn_commit(server, 1, group_id)),
    ]


class TestWhoLeads:
    def test_every_request_to_a_broker_that_does_not_lead_the_shard(self, server: Server) -> None:
        """[126]: a request with several groups, if another broker leads the shard of at least one."""
        server.runtime.load(shard_of(server), Leader(node_id=1, leader_epoch=1))
        assert every_error(server) == [ErrorCode.NOT_COORDINATOR] * 11

    def test_of_the_same_process_the_broker_that_leads_it_answers(self, server: Server) -> None:
        server.journal.holds = False
        server.commit("a", offset=7)
        server.runtime.load(shard_of(server), Leader(node_id=1, leader_epoch=1))
        group = OffsetFetchRequestGroup(group_id="a", topics=None)
        answer = later(server.runtime.submit(replace(context(9), node_id=1), group))
        assert offset(answer) == 7
        assert server.fetch("b").error_code == ErrorCode.NONE

    def test_each_broker_lists_the_groups_that_it_leads(self, server: Server) -> None:
        """[119]"""
        server.journal.holds = False
        for group_id in "ab":
            server.commit(group_id)
        server.runtime.load(shard_of(server), Leader(node_id=1, leader_epoch=1))
        listed = [
            [group.group_id for group in server.runtime.list_groups(at, ListGroupsRequest()).groups]
            for at in (context(5), replace(context(5), node_id=1), replace(context(5), node_id=2))
        ]
        assert listed == [["b"], ["a"], []]
        server.runtime.unload(shard_of(server))
        answer = server.runtime.list_groups(replace(context(5), node_id=1), ListGroupsRequest())
        assert (answer.error_code, answer.groups) == (ErrorCode.NONE, ())

    def test_a_former_leader_is_ignored(self, server: Server) -> None:
        """[165]"""
        server.journal.holds = False
        shard = shard_of(server)
        server.runtime.load(shard, Leader(node_id=0, leader_epoch=5))
        server.stable()
        assert result(server.runtime.load(shard, Leader(node_id=1, leader_epoch=4))) is None
        assert result(server.runtime.load(shard, Leader(node_id=1, leader_epoch=5))) is None
        server.runtime.unload(shard, leader_epoch=4)
        server.runtime.unload(shard, leader_epoch=5)
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)
        server.runtime.unload(shard, leader_epoch=6)
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)

    def test_a_leader_that_is_elected_again_goes_on(self, server: Server) -> None:
        """[165]: parked requests stay parked."""
        server.stable()
        joining = server.join(version=3)
        server.runtime.load(shard_of(server), Leader(node_id=0, leader_epoch=1))
        assert result(joining) is PENDING
        server.runtime.unload(shard_of(server), leader_epoch=1)
        assert result(joining) is PENDING

    def test_a_shard_that_was_given_up_can_be_led_again(self, server: Server) -> None:
        server.stable()
        server.runtime.unload(shard_of(server))
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        server.runtime.load(shard_of(server), Leader())
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)

    def test_before_the_start_and_after_the_end(self, server: Server) -> None:
        """[125] [126]: nobody knows yet, or any more, which broker leads what."""
        server.runtime.stop()
        assert every_error(server) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 11
        answer = server.runtime.list_groups(context(5), ListGroupsRequest())
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert result(end(server)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


class TestGivingUp:
    def test_what_is_parked_and_what_is_not_durable_is_refused(self, server: Server) -> None:
        """[124]"""
        server.stable()
        joining = server.join(version=3)
        committing = server.commit(**MEMBER)
        other = server.commit("b")
        server.runtime.unload(shard_of(server))
        assert result(joining).error_code == ErrorCode.NOT_COORDINATOR
        assert error(committing) == ErrorCode.NOT_COORDINATOR
        assert result(other) is PENDING

    def test_members_find_their_group_as_it_was(self, server: Server) -> None:
        """Their sessions begin again at the next leader, and there is no rebalance."""
        server.stable()
        server.runtime.unload(shard_of(server))
        server.clock.advance(60)
        server.runtime.load(shard_of(server), Leader(leader_epoch=1))
        assert server.heartbeat() == HeartbeatResponse(error_code=ErrorCode.NONE)

    def test_a_shard_that_nobody_leads_has_no_deadlines(self, server: Server) -> None:
        server.stable()
        for group_id in "ab":
            server.runtime.unload(shard_of(server, group_id))
        server.clock.advance(10_000_000)
        assert server.clock.getDelayedCalls() == []
        assert server.journal.writes == []


class TestLoading:
    """The journal has many batches: loading goes on turn by turn while other shards are served."""

    @pytest.fixture
    def long(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
        """A server that takes one turn to load each entry of shard a's journal."""
        server.journal.holds = False
        for n in range(5):
            server.commit("a", offset=n)
        server.runtime.unload(shard_of(server))
        load = server.journal.load

        def slowly(shard: int) -> Any:
            for entry in load(shard):
                server.clock.rightNow += LONGEST_TURN_MS / 1000
                yield entry

        monkeypatch.setattr(server.journal, "load", slowly)
        return server

    def test_every_request_meanwhile(self, long: Server) -> None:
        """[95] [117] [119] [166]: heartbeats succeed and SyncGroups are sent back, because other answers make
        clients give up."""
        served = long.runtime.load(shard_of(long), Leader(leader_epoch=1))
        loading = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 11
        loading[1], loading[2] = ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE
        assert every_error(long) == loading
        assert offset(long.fetch("b")) == -1
        answer = long.runtime.list_groups(context(5), ListGroupsRequest())
        assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ())
        assert result(end(long)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert result(served) is PENDING
        long.clock.pump([0] * 5)
        assert result(served) is None
        assert offset(long.fetch("a")) == 4

    def test_another_broker_is_not_the_coordinator_meanwhile(self, long: Server) -> None:
        long.runtime.load(shard_of(long), Leader(node_id=1, leader_epoch=1))
        assert long.fetch("a").error_code == ErrorCode.NOT_COORDINATOR

    def test_a_topic_that_is_deleted_meanwhile(self, long: Server) -> None:
        """[156]"""
        long.runtime.load(shard_of(long), Leader(leader_epoch=1))
        later(long.runtime.topics_deleted({"topic"}))
        long.clock.pump([0] * 5)
        assert offset(long.fetch("a")) == -1

    def test_giving_up_meanwhile(self, long: Server) -> None:
        served = long.runtime.load(shard_of(long), Leader(leader_epoch=1))
        long.runtime.unload(shard_of(long))
        assert result(served) is None
        assert long.fetch("a").error_code == ErrorCode.NOT_COORDINATOR
        long.clock.pump([0] * 5)
        assert long.fetch("a").error_code == ErrorCode.NOT_COORDINATOR

    def test_another_leader_meanwhile_begins_anew(self, long: Server) -> None:
        long.runtime.load(shard_of(long), Leader(leader_epoch=1))
        long.clock.pump([0] * 3)
        long.runtime.load(shard_of(long), Leader(node_id=1, leader_epoch=2))
        long.clock.pump([0] * 5)
        group = OffsetFetchRequestGroup(group_id="a", topics=None)
        assert offset(later(long.runtime.submit(replace(context(9), node_id=1), group))) == 4

    def test_records_that_cannot_be_read(
        self,
        server: Server,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """[161]"""
        shard = shard_of(server)
        server.runtime.unload(shard)
        server.journal.durable[shard] = [NONSENSE]
        with caplog.at_level(logging.ERROR):
            served = server.runtime.load(shard, Leader(leader_epoch=1))
        served.addErrback(lambda failure: failure.trap(StorageError))
        assert result(served) is StorageError
        assert f"__consumer_offsets-{shard}: cannot be loaded" in caplog.text
        assert server.fetch("a").error_code == ErrorCode.NOT_COORDINATOR

    def test_a_journal_that_cannot_be_read_yet_is_read_later(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shard = shard_of(server)
        server.runtime.unload(shard)
        with monkeypatch.context() as broken:

            def load(_: int) -> NoReturn:
                raise StorageError("a sync has failed")

            broken.setattr(server.journal, "load", load)
            served = server.runtime.load(shard, Leader(leader_epoch=1))
            assert type(result(served.addErrback(lambda failure: failure.value))) is StorageError
            server.clock.advance(1.5)
            assert server.fetch("a").error_code == ErrorCode.NOT_COORDINATOR
        server.clock.advance(1)
        assert server.fetch("a").error_code == ErrorCode.NONE

    def test_a_shard_that_is_given_up_is_not_read_later(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shard = shard_of(server)
        server.runtime.unload(shard)
        with monkeypatch.context() as broken:

            def load(_: int) -> NoReturn:
                raise StorageError("a sync has failed")

            broken.setattr(server.journal, "load", load)
            server.runtime.load(shard, Leader(leader_epoch=1)).addErrback(lambda _: None)
        server.runtime.unload(shard)
        server.clock.advance(10)
        assert server.fetch("a").error_code == ErrorCode.NOT_COORDINATOR

    def test_a_journal_that_ends_early_is_all_there_is(self, server: Server) -> None:
        """[161]: compaction may have removed the last records."""
        server.journal.durable[shard_of(server)] = [JournalBatch(())]
        server.runtime.unload(shard_of(server))
        assert result(server.runtime.load(shard_of(server), Leader(leader_epoch=1))) is None
        assert offset(server.fetch("a")) == -1

    def test_what_a_former_leader_still_writes_is_waited_for(self, server: Server) -> None:
        """It will become durable, and so must be loaded."""
        committing = server.commit("a", offset=9)
        server.runtime.load(shard_of(server), Leader(node_id=0, leader_epoch=1))
        server.runtime.unload(shard_of(server))
        served = server.runtime.load(shard_of(server), Leader(leader_epoch=2))
        assert error(committing) == ErrorCode.NOT_COORDINATOR
        assert server.fetch("a").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        server.journal.release()
        assert result(served) is None
        assert offset(server.fetch("a")) == 9


class TestTransactions:
    def test_a_marker_is_answered_when_it_is_durable(self, server: Server) -> None:
        """[153]: and so are requests that see its effect."""
        committing = txn_commit(server, 5)
        server.journal.release()
        assert error(committing) == ErrorCode.NONE
        ending, fetching = end(server), server.fetch()
        assert (result(ending), result(fetching)) == (PENDING, PENDING)
        server.journal.release()
        assert (result(ending), offset(fetching)) == (ErrorCode.NONE, 5)

    def test_a_commit_and_its_marker_are_in_the_journal_with_their_producer(self, server: Server) -> None:
        server.journal.holds = False
        txn_commit(server, 5)
        end(server)
        batch, marker = server.journal.durable[shard_of(server)]
        assert isinstance(batch, JournalBatch)
        assert (batch.producer, marker) == ((P, 0), EndTxnMarker(P, 0, True, 0, 1))

    def test_each_producer_and_each_marker_has_an_append_of_its_own(self, server: Server) -> None:
        server.begin_commit()
        for producer_id in (P, P, P + 1):
            server.runtime.submit(context(5), replace(txn_commit_request(5), producer_id=producer_id))
        later(server.runtime.write_marker(shard_of(server), EndTxnMarker(P, 0, True, 0, 1)))
        server.clock.advance(0)
        seen = [
            entry if isinstance(entry, EndTxnMarker) else (entry.producer[0], len(entry.records))
            for _, entry, _ in server.journal.writes
        ]
        assert seen == [(-1, 1), (P, 2), (P + 1, 1), EndTxnMarker(P, 0, True, 0, 1)]

    def test_a_restart_between_a_commit_and_its_marker(self, server: Server) -> None:
        """[163]"""
        server.journal.holds = False
        txn_commit(server, 5)
        server.start()
        assert offset(server.fetch()) == -1
        assert result(end(server)) == ErrorCode.NONE
        server.start()
        assert offset(server.fetch()) == 5

    def test_a_marker_that_is_not_written_ends_nothing(self, server: Server) -> None:
        server.journal.holds = False
        txn_commit(server, 5)
        server.journal.holds = True
        ending = end(server)
        server.journal.fail()
        assert result(ending) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert offset(server.fetch()) == -1
        server.journal.holds = False
        assert result(end(server)) == ErrorCode.NONE
        assert offset(server.fetch()) == 5

    def test_a_commit_that_is_not_written_is_not_pending(self, server: Server) -> None:
        committing = txn_commit(server, 5)
        server.journal.fail()
        assert error(committing) == ErrorCode.NOT_COORDINATOR
        server.journal.holds = False
        end(server)
        assert offset(server.fetch()) == -1

    def test_a_stable_fetch_waits_as_any_other(self, server: Server) -> None:
        """[145]: and like any other it is refused if what it waits for is not written."""
        server.commit(offset=5)
        topic = OffsetFetchRequestGroup(group_id="a", topics=None)
        fetching = server.submit(StableOffsetFetch(topic))
        assert result(fetching) is PENDING
        server.journal.fail()
        assert result(fetching) == OffsetFetchResponseGroup(
            group_id="a", error_code=ErrorCode.NOT_COORDINATOR
        )

    def test_a_fetch_sees_what_is_durable_alone(self, server: Server) -> None:
        """[141]: each is answered with the commits before it, once they are durable."""
        first, seen_first, second, seen_second = (
            server.commit(offset=1),
            server.fetch(),
            server.commit(offset=2),
            server.fetch(),
        )
        server.journal.release()
        assert (error(first), offset(seen_first), result(second)) == (ErrorCode.NONE, 1, PENDING)
        assert result(seen_second) is PENDING
        server.journal.release()
        assert offset(seen_second) == 2

    def test_a_refused_marker_is_answered_in_its_turn(self, server: Server) -> None:
        first = end(server, epoch=3)
        second = end(server, epoch=2)
        assert (result(first), result(second)) == (PENDING, PENDING)
        server.journal.release()
        assert [result(first), result(second)] == [ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH]
