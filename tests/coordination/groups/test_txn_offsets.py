"""Offsets committed in a transaction are pending until it ends; then the last one in the log counts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kshim.coordination.fencing import MOST_PRODUCERS
from kshim.coordination.groups.refusals import DeleteGroup, StableOffsetFetch
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, OffsetCommitKey
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.txn_offset_commit import TxnOffsetCommitResponse
from tests.coordination.groups.history import START_MS, Client, History, assign

P, Q = 7, 8
"""Two producers."""
CHECK_MS = 600_000
RETENTION_MS = 10_080 * 60_000


def tombstones(history: History, since: int = 0) -> list[tuple[str, int]]:
    """The offsets that records from number `since` on have deleted."""
    return [
        (key.topic, key.partition)
        for key, value in history.records()[since:]
        if isinstance(key, OffsetCommitKey) and value is None
    ]


OLD_ID, NEW_ID = UUID(int=8), UUID(int=9)


def all_of(client: Client, *, stable: bool) -> dict[int, tuple[int, int]]:
    """The offset and error of each partition in a fetch of all partitions."""
    request = OffsetFetchRequestGroup(group_id=client.group_id, topics=None)
    answer = client.history.ask(StableOffsetFetch(request) if stable else request)
    return {
        partition.partition_index: (partition.committed_offset, partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def delete_offset(history: History, partition: int = 0) -> Any:
    topic = OffsetDeleteRequestTopic(
        name="topic", partitions=(OffsetDeleteRequestPartition(partition_index=partition),)
    )
    return history.ask(OffsetDeleteRequest(group_id="group", topics=(topic,)))


class TestWhoMayCommit:
    def test_anyone_without_a_generation_while_there_is_no_group(self, history: History) -> None:
        """[138]"""
        assert history.client().txn_commit(5, P) == ErrorCode.NONE
        assert (history.group().state, history.group().protocol_type) == (State.EMPTY, None)
        assert not any(isinstance(key, GroupMetadataKey) for key, _ in history.records())

    def test_a_generation_of_an_unknown_group(self, history: History) -> None:
        """[138]: from v6 on the error is the group's (KIP-1319)."""
        client = history.client(member_id="m", generation_id=1)
        assert client.txn_commit(5, P) == ErrorCode.GROUP_ID_NOT_FOUND
        answer = history.ask(client.txn_request({0: 5}, P), 5)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.ILLEGAL_GENERATION
        assert history.groups() == {}

    def test_a_member_of_the_generation(self, history: History) -> None:
        """[138]"""
        leader, follower = history.stable(2)
        assert [leader.txn_commit(1, P), follower.txn_commit(2, P)] == [ErrorCode.NONE] * 2

    def test_nobody_of_another_id_or_generation(self, history: History) -> None:
        """[138]"""
        (client,) = history.stable(1)
        assert client.txn_commit(1, P, member_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.txn_commit(1, P, generation_id_or_member_epoch=2) == ErrorCode.ILLEGAL_GENERATION
        assert client.txn_commit(1, P, generation_id_or_member_epoch=-1) == ErrorCode.ILLEGAL_GENERATION
        assert client.txn_commit(1, P, member_id="") == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.txn_commit(1, P, group_instance_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID
        client.leave()
        assert client.txn_commit(1, P) == ErrorCode.UNKNOWN_MEMBER_ID
        assert not history.hard_states()[0].pending
        assert not history.hard_states()[1].pending

    @pytest.mark.parametrize("member_id", ["", "stranger"])
    def test_nobody_with_a_member_s_instance_id_alone(self, history: History, member_id: str) -> None:
        """[138]"""
        (client,) = history.stable(1, static=True)
        assert client.txn_commit(1, P, member_id=member_id) == ErrorCode.FENCED_INSTANCE_ID

    def test_a_producer_that_does_not_name_its_member(self, history: History) -> None:
        """[137]: producers before v3 cannot name a member."""
        history.stable(2)
        stranger = history.client()
        assert stranger.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID
        assert stranger.txn_commit(5, P) == ErrorCode.NONE

    def test_in_any_phase_of_a_rebalance(self, history: History) -> None:
        """[137] [138]: records read before a rebalance can be committed together with the results."""
        leader, follower = history.stable(2)
        leader.join()
        assert history.group().state is State.PREPARING_REBALANCE
        assert [follower.txn_commit(1, P), history.client().txn_commit(2, Q)] == [ErrorCode.NONE] * 2
        follower.join()
        assert history.group().state is State.COMPLETING_REBALANCE
        assert follower.commit(1) == ErrorCode.REBALANCE_IN_PROGRESS
        assert [follower.txn_commit(1, P), history.client().txn_commit(2, Q)] == [ErrorCode.NONE] * 2

    def test_it_does_not_count_as_a_heartbeat(self, history: History) -> None:
        (client,) = history.stable(1)
        history.sleep(client.session_timeout_ms - 1)
        assert client.txn_commit(1, P) == ErrorCode.NONE
        history.sleep(1)
        assert history.group().state is State.EMPTY

    def test_a_dead_group(self, history: History) -> None:
        (client,) = history.stable(1)
        history.group().transition_to(State.DEAD, history.now_ms)
        assert client.txn_commit(1, P) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert history.client().txn_commit(1, P) == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_the_group_with_the_empty_id(self, history: History) -> None:
        assert history.client("").txn_commit(1, P) == ErrorCode.INVALID_GROUP_ID

    def test_only_partitions_whose_metadata_is_not_too_long(self, history: History) -> None:
        client = history.client()
        assert client.txn_commit(5, P, metadata="x" * 4_097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert client.txn_commit(5, P, metadata="x" * 4_096, partition=1) == ErrorCode.NONE
        history.end_transaction(P, committed=True)
        assert client.fetched(0).committed_offset == -1
        assert client.fetched(1).metadata == "x" * 4_096

    @pytest.mark.parametrize(
        ("version", "error"),
        [
            (1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            (5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ],
    )
    def test_while_the_shard_is_loading(self, history: History, version: int, error: ErrorCode) -> None:
        """[139]: producers up to v1 give up on the error code for loading."""
        history.begin_load()
        assert history.client().txn_commit(1, P, version) == error


class TestPending:
    def test_it_is_not_seen_until_its_transaction_is_committed(self, history: History) -> None:
        """[142]"""
        client = history.client()
        client.commit(3)
        client.txn_commit(5, P, metadata="m", leader_epoch=9)
        assert client.committed() == 3
        assert history.end_transaction(P, committed=True) == ErrorCode.NONE
        now = client.fetched(stable=True)
        assert (now.committed_offset, now.committed_leader_epoch, now.metadata) == (5, 9, "m")

    def test_it_is_never_seen_if_its_transaction_is_aborted(self, history: History) -> None:
        """[154]"""
        client = history.client()
        client.commit(3)
        client.txn_commit(5, P)
        assert history.end_transaction(P, committed=False) == ErrorCode.NONE
        assert (client.committed(), client.fetched(stable=True).committed_offset) == (3, 3)
        assert history.end_transaction(P, committed=True) == ErrorCode.NONE
        assert client.committed() == 3

    def test_a_stable_fetch_refuses_what_a_transaction_may_move(self, history: History) -> None:
        """[142]: partition 1 has a commit, partition 2 none, partition 3 no transaction."""
        client = history.client()
        for partition in (1, 2):
            client.txn_commit(5, P, partition=partition)
        client.commit(3)
        client.txn_commit(6, Q, partition=1)
        assert client.fetched(0, stable=True).committed_offset == 3
        for partition in (1, 2):
            fetched = client.fetched(partition, stable=True)
            assert (fetched.committed_offset, fetched.committed_leader_epoch, fetched.metadata) == (
                -1,
                -1,
                "",
            )
            assert fetched.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert client.fetched(partition).error_code == ErrorCode.NONE
        assert client.fetched(3, stable=True).error_code == ErrorCode.NONE
        history.end_transaction(P, committed=True)
        assert client.fetched(2, stable=True).committed_offset == 5
        assert client.fetched(1, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        history.end_transaction(Q, committed=True)
        assert client.fetched(1, stable=True).committed_offset == 6

    def test_a_fetch_of_all_partitions(self, history: History) -> None:
        """[143]: a partition that only has a pending offset is not listed."""
        client = history.client()
        client.txn_commit(1, P, partition=1)
        client.commit(3)
        assert all_of(client, stable=True) == all_of(client, stable=False) == {0: (3, 0)}
        client.txn_commit(4, P)
        assert all_of(client, stable=False) == {0: (3, 0)}
        assert all_of(client, stable=True) == {0: (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)}
        history.end_transaction(P, committed=True)
        assert all_of(client, stable=True) == {0: (4, 0), 1: (1, 0)}

    def test_a_marker_of_another_producer_changes_nothing(self, history: History) -> None:
        """[154]"""
        client = history.client()
        client.txn_commit(5, P)
        assert history.end_transaction(Q, committed=True) == ErrorCode.NONE
        assert history.end_transaction(Q, committed=False) == ErrorCode.NONE
        assert client.fetched(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        history.end_transaction(P, committed=True)
        assert client.committed() == 5

    def test_one_producer_and_many_groups(self, history: History) -> None:
        """[154]"""
        groups = [
            name for name in map("group{}".format, range(9)) if history.coordinator.shard_for(name) == 0
        ]
        clients = [history.client(name) for name in groups[:3]]
        for n, client in enumerate(clients):
            client.txn_commit(n, P)
        clients[2].txn_commit(9, Q)
        history.end_transaction(P, committed=True, group_id=groups[0])
        assert [client.committed() for client in clients] == [0, 1, 2]
        assert clients[2].fetched(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT

    def test_many_producers_and_one_group(self, history: History) -> None:
        """[154]"""
        client = history.client()
        client.txn_commit(5, P, partition=0)
        client.txn_commit(6, Q, partition=1)
        history.end_transaction(P, committed=False)
        history.end_transaction(Q, committed=True)
        assert (client.committed(0), client.committed(1)) == (-1, 6)

    def test_the_last_commit_of_a_transaction_counts(self, history: History) -> None:
        client = history.client()
        for offset in (5, 6, 4):
            client.txn_commit(offset, P)
        history.end_transaction(P, committed=True)
        assert client.committed() == 4

    def test_a_restart_forgets_nothing_of_it(self, history: History) -> None:
        """[163]: after a load, pending, committed and aborted offsets are as before."""
        client = history.client()
        client.commit(1)
        for partition, producer in enumerate((P, Q, 9)):
            client.txn_commit(5, producer, partition=partition)
        history.end_transaction(Q, committed=True)
        history.end_transaction(9, committed=False)
        history.restart()
        assert all_of(client, stable=False) == {0: (1, 0), 1: (5, 0)}
        assert client.fetched(0, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert client.fetched(2, stable=True).error_code == ErrorCode.NONE
        history.end_transaction(P, committed=True)
        history.restart()
        assert all_of(client, stable=True) == {0: (5, 0), 1: (5, 0)}

    def test_a_group_that_only_a_transaction_knows_is_there_after_a_restart(self, history: History) -> None:
        """[163]"""
        history.client().txn_commit(5, P)
        history.restart()
        assert history.group().state is State.EMPTY
        history.end_transaction(P, committed=True)
        assert history.client().committed() == 5


class TestTheLaterOneWins:
    """The later one in the log of two commits for one partition wins."""

    def test_a_consumer_s_commit_after_a_transaction_s(self, history: History) -> None:
        """[153] [163]"""
        client = history.client()
        client.txn_commit(5, P)
        client.commit(3)
        assert client.fetched(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        history.end_transaction(P, committed=True)
        assert client.fetched(stable=True).committed_offset == 3
        history.restart()
        assert client.committed() == 3

    def test_a_transaction_s_after_a_consumer_s(self, history: History) -> None:
        """[153] [163]"""
        client = history.client()
        client.commit(3)
        client.txn_commit(2, P)
        history.end_transaction(P, committed=True)
        assert client.committed() == 2
        history.restart()
        assert client.committed() == 2

    def test_a_transaction_s_once_more_after_a_consumer_s(self, history: History) -> None:
        client = history.client()
        client.txn_commit(5, P)
        client.commit(3)
        client.txn_commit(6, P)
        history.end_transaction(P, committed=True)
        assert client.committed() == 6

    def test_a_restart_in_between(self, history: History) -> None:
        """[163]"""
        client = history.client()
        client.txn_commit(5, P)
        client.commit(3)
        history.restart()
        history.end_transaction(P, committed=True)
        assert client.committed() == 3

    @pytest.mark.parametrize("first", [P, Q])
    def test_of_two_transactions_whichever_ends_first(self, history: History, first: int) -> None:
        """[153]"""
        client = history.client()
        client.txn_commit(5, P)
        client.txn_commit(6, Q)
        history.end_transaction(first, committed=True)
        history.end_transaction(P + Q - first, committed=True)
        assert client.committed() == 6

    def test_an_aborted_one_does_not_count(self, history: History) -> None:
        client = history.client()
        client.txn_commit(5, P)
        client.txn_commit(6, Q)
        history.end_transaction(Q, committed=False)
        history.end_transaction(P, committed=True)
        assert client.committed() == 5

    def test_the_order_is_that_of_the_last_commits(self, history: History) -> None:
        client = history.client()
        client.txn_commit(5, P)
        client.txn_commit(6, Q)
        client.txn_commit(7, P)
        history.end_transaction(P, committed=True)
        history.end_transaction(Q, committed=True)
        assert client.committed() == 7


class TestDeletion:
    def test_of_an_offset_that_is_only_pending(self, history: History) -> None:
        """[146] [155]"""
        client = history.client()
        client.txn_commit(5, P)
        records = len(history.records())
        answer = delete_offset(history)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        assert tombstones(history, records) == [("topic", 0)]
        assert client.fetched(stable=True).error_code == ErrorCode.NONE
        history.end_transaction(P, committed=True)
        assert client.committed() == -1

    def test_of_an_offset_that_is_committed_and_pending_twice(self, history: History) -> None:
        """[146] [155]"""
        client = history.client()
        client.commit(1)
        client.txn_commit(5, P)
        client.txn_commit(6, Q)
        client.txn_commit(7, Q, partition=1)
        records = len(history.records())
        delete_offset(history)
        assert tombstones(history, records) == [("topic", 0)]
        history.end_transaction(P, committed=True)
        history.end_transaction(Q, committed=True)
        assert (client.committed(0), client.committed(1)) == (-1, 7)

    def test_of_an_offset_that_is_neither(self, history: History) -> None:
        """[146]"""
        history.client().txn_commit(5, P)
        records = len(history.records())
        delete_offset(history, partition=1)
        assert len(history.records()) == records

    def test_of_a_group(self, history: History) -> None:
        """[148]: a tombstone for each offset, once, then one for the group."""
        client = history.client()
        client.commit(1)
        client.txn_commit(5, P)
        client.txn_commit(6, Q)
        client.txn_commit(7, Q, partition=1)
        records = len(history.records())
        assert history.ask(DeleteGroup("group")).error_code == ErrorCode.NONE
        assert tombstones(history, records) == [("topic", 0), ("topic", 1)]
        assert history.records()[-1] == (GroupMetadataKey(group="group"), None)
        history.end_transaction(P, committed=True)
        history.end_transaction(Q, committed=True)
        assert all_of(client, stable=True) == {}
        history.restart()
        assert history.groups() == {}

    def test_of_a_topic(self, history: History) -> None:
        """[156]: in every group, committed or pending."""
        one, two = history.client("one"), history.client("two")
        one.commit(1)
        one.txn_commit(5, P)
        two.txn_commit(6, P, partition=3)
        history.delete_topics("other")
        assert one.committed() == 1
        records = len(history.records())
        history.delete_topics("topic")
        assert sorted(tombstones(history, records)) == [("topic", 0), ("topic", 3)]
        for group_id in ("one", "two"):
            history.end_transaction(P, committed=True, group_id=group_id)
        assert all_of(one, stable=True) == all_of(two, stable=True) == {}

    def test_of_a_topic_that_is_made_again(self, history: History) -> None:
        """Pending offsets of the new topic stay, and count if their transaction is committed."""
        client = history.client()
        history.topic_ids["topic"] = OLD_ID
        client.commit(1)
        history.topic_ids["topic"] = NEW_ID
        client.txn_commit(5, P)
        history.topic_ids["topic"] = OLD_ID
        history.delete_topics("topic")
        history.topic_ids["topic"] = NEW_ID
        assert all_of(client, stable=False) == {}
        history.end_transaction(P, committed=True)
        assert all_of(client, stable=True) == {0: (5, ErrorCode.NONE)}


class TestExpiry:
    def test_what_is_pending_does_not_expire(self, history: History) -> None:
        """[150]"""
        client = history.client()
        client.commit(1)
        client.txn_commit(5, P)
        history.sleep(RETENTION_MS + CHECK_MS)
        assert client.committed() == 1
        history.end_transaction(P, committed=False)
        history.sleep(CHECK_MS)
        assert history.groups() == {}

    def test_the_other_offsets_of_its_group_do(self, history: History) -> None:
        """[150]"""
        client = history.client()
        client.txn_commit(9, Q, partition=1)
        history.end_transaction(Q, committed=True)
        client.commit(1)
        client.txn_commit(5, P)
        history.sleep(RETENTION_MS + CHECK_MS)
        assert tombstones(history) == [("topic", 1)]
        assert list(history.groups()) == ["group"]

    def test_a_group_is_kept_while_a_transaction_is_open(self, history: History) -> None:
        """[150]: even one that has committed nothing yet."""
        client = history.client()
        client.txn_commit(5, P)
        history.sleep(RETENTION_MS + CHECK_MS)
        assert list(history.groups()) == ["group"]
        history.end_transaction(P, committed=True)
        assert client.committed() == 5


class TestFencing:
    def test_an_older_epoch_of_a_producer_may_not_commit(self, history: History) -> None:
        client = history.client()
        client.txn_commit(5, P, producer_epoch=3)
        assert client.txn_commit(6, P, producer_epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert client.txn_commit(6, Q, producer_epoch=2) == ErrorCode.NONE

    def test_an_epoch_that_a_marker_has_followed_may_not_commit(self, history: History) -> None:
        """Its transaction has ended: a late commit would be pending for ever (KIP-890)."""
        assert history.end_transaction(P, committed=False, producer_epoch=3) == ErrorCode.NONE
        history.restart()
        assert history.client().txn_commit(5, P, producer_epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert history.client().txn_commit(5, P, producer_epoch=3) == ErrorCode.NONE

    def test_an_older_epoch_may_not_end_a_transaction(self, history: History) -> None:
        client = history.client()
        client.txn_commit(5, P, producer_epoch=3)
        error = history.end_transaction(P, committed=True, producer_epoch=2)
        assert error == ErrorCode.INVALID_PRODUCER_EPOCH
        assert client.fetched(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert history.end_transaction(P, committed=True, producer_epoch=4) == ErrorCode.NONE

    def test_a_transaction_coordinator_that_was_replaced_may_not_end_one(self, history: History) -> None:
        client = history.client()
        assert history.end_transaction(P, committed=True, coordinator_epoch=4) == ErrorCode.NONE
        client.txn_commit(5, P)
        error = history.end_transaction(P, committed=True, coordinator_epoch=3)
        assert error == ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert client.committed() == -1
        assert history.end_transaction(P, committed=True, coordinator_epoch=4) == ErrorCode.NONE
        assert client.committed() == 5

    def test_as_many_producers_are_remembered_as_there_is_room_for(self, history: History) -> None:
        history.end_transaction(0, committed=True, producer_epoch=1)
        for producer_id in range(1, MOST_PRODUCERS + 1):
            history.end_transaction(producer_id, committed=True, producer_epoch=1)
        client = history.client()
        assert client.txn_commit(5, 0) == ErrorCode.NONE
        assert client.txn_commit(5, MOST_PRODUCERS) == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_a_marker_is_written_and_refused_ones_are_not(self, history: History) -> None:
        history.end_transaction(P, committed=True, producer_epoch=1, coordinator_epoch=1)
        entries = len(history.journal)
        history.end_transaction(P, committed=True, producer_epoch=0, coordinator_epoch=1)
        history.end_transaction(P, committed=True, producer_epoch=1, coordinator_epoch=0)
        assert len(history.journal) == entries


def test_no_transaction_ends_in_a_shard_without_a_leader(history: History) -> None:
    """The transaction coordinator retries on NOT_LEADER_OR_FOLLOWER; it does not know the groups'
    coordinators."""
    history.begin_load()
    assert history.end_transaction(P, committed=True) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    history.resign()
    assert history.end_transaction(P, committed=True) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_commit_answers_in_the_order_asked(history: History) -> None:
    client = history.client()
    answer = history.ask(client.txn_request({3: 1, 1: 2, 2: 3}, P))
    assert isinstance(answer, TxnOffsetCommitResponse)
    assert [partition.partition_index for partition in answer.topics[0].partitions] == [3, 1, 2]


def test_members_and_transactions_in_one_history(history: History) -> None:
    """A rebalance between a commit and its marker; the new owner reads the transaction's offset."""
    leader, follower = history.stable(2)
    leader.txn_commit(5, P)
    follower.leave()
    leader.join()
    assign([leader])
    assert history.group().generation == 2
    assert leader.fetched(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    history.end_transaction(P, committed=True)
    assert leader.fetched(stable=True).committed_offset == 5
    assert history.now_ms > START_MS
