"""TxnOffsetCommit over the wire: what it asks the transaction's coordinator, and what reaches the group's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.groups import Groups
from tests.api.harness import advance, create, later, result

PRODUCER_ID = 7
BY_NAME = range(6)
"""Versions that name topics; later ones have their ids."""


class ByName(Groups):
    """Commits name topics, unless a test gives a later version."""

    def send(self, request: Any, version: int | None = None) -> list[Any]:
        if version is None and isinstance(request, TxnOffsetCommitRequest):
            version = BY_NAME[-1]
        return super().send(request, version)


class Transactions:
    """A transaction coordinator that answers with `error` or `response`, once `later` has fired if it is
    set."""

    def __init__(self) -> None:
        self.asked: list[AddPartitionsToTxnRequest] = []
        self.error = ErrorCode.NONE
        self.response: AddPartitionsToTxnResponse | None = None
        self.later: Deferred[Any] | None = None

    async def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        self.asked.append(request)
        if self.later is not None:
            await self.later
        return self.answer(request)

    def answer(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        (transaction,) = request.transactions
        results = tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=self.error)
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
        )
        return self.response or AddPartitionsToTxnResponse(
            results_by_transaction=(
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id, topic_results=results
                ),
            )
        )


@pytest.fixture
def transactions() -> Transactions:
    return Transactions()


@pytest.fixture
def groups(transactions: Transactions) -> Groups:
    groups = ByName()
    groups.broker = replace(groups.broker, transactions=transactions)
    create(groups.broker, "two", partitions=2)
    return groups


def commit(*topics: tuple[str, tuple[int, ...]], **fields: Any) -> TxnOffsetCommitRequest:
    """A commit of offset 5 for these partitions of topics."""
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="group",
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in indexes
                ),
            )
            for name, indexes in topics
        ),
    )
    return replace(request, **fields)


def errors(answer: TxnOffsetCommitResponse) -> dict[str, dict[int, int]]:
    return {
        topic.name: {partition.partition_index: partition.error_code for partition in topic.partitions}
        for topic in answer.topics
    }


def error(groups: Groups, version: int | None = None) -> ErrorCode:
    """The error of a commit for one partition."""
    return ErrorCode(errors(groups.ask(commit(("two", (0,))), version))["two"][0])


def fetched(groups: Groups, *, stable: bool = False) -> dict[int, tuple[int, int]]:
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id="group", topics=None),), require_stable=stable
    )
    (group,) = groups.ask(request, 9).groups
    return {
        partition.partition_index: (partition.committed_offset, partition.error_code)
        for topic in group.topics
        for partition in topic.partitions
    }


def end_transaction(groups: Groups, *, committed: bool) -> None:
    marker = EndTxnMarker(PRODUCER_ID, 0, committed, 0, groups.broker.now_ms())
    written = later(groups.runtime.write_marker(groups.runtime.shard_for("group"), marker))
    advance(groups.broker)
    assert result(written) == ErrorCode.NONE


@pytest.mark.parametrize("version", BY_NAME)
def test_offsets_count_when_their_transaction_is_committed(groups: Groups, version: int) -> None:
    """[142]"""
    assert errors(groups.ask(commit(("two", (0, 1))), version)) == {"two": {0: 0, 1: 0}}
    assert fetched(groups) == {}
    end_transaction(groups, committed=True)
    assert fetched(groups, stable=True) == {0: (5, 0), 1: (5, 0)}


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_a_stable_fetch_refuses_what_is_pending(groups: Groups, version: int) -> None:
    """[142]: in each version that can ask for a stable fetch."""
    groups.ask(commit(("two", (0,))))
    end_transaction(groups, committed=True)
    groups.ask(commit(("two", (0,))))
    group = OffsetFetchRequestGroup(group_id="group", topics=None)
    old = OffsetFetchRequest(group_id="group", topics=None, require_stable=True)
    answer = groups.ask(
        old if version == 7 else OffsetFetchRequest(groups=(group,), require_stable=True), version
    )
    topics = answer.topics if version == 7 else answer.groups[0].topics
    assert topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    again = replace(old, require_stable=False)
    assert groups.ask(again, 7).topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", BY_NAME)
def test_the_transaction_is_asked_for_the_group_s_partition(
    groups: Groups, transactions: Transactions, version: int
) -> None:
    """Up to v4 to verify that the transaction has it; from v5 on to add it (KIP-890)."""
    groups.ask(commit(("two", (0,))), version)
    (asked,) = transactions.asked
    (transaction,) = asked.transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("t", 7, 0)
    assert transaction.verify_only == (version < 5)
    shard = groups.runtime.shard_for("group")
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [
        ("__consumer_offsets", (shard,))
    ]


@pytest.mark.parametrize("version", BY_NAME)
def test_the_coordinator_is_asked_once_per_transaction(
    groups: Groups, transactions: Transactions, version: int
) -> None:
    """Until a transaction of one producer and epoch ends, the group's partition remembers it."""
    for _ in range(2):
        assert error(groups, version) == ErrorCode.NONE
    assert len(transactions.asked) == 1
    end_transaction(groups, committed=True)
    assert error(groups, version) == ErrorCode.NONE
    assert len(transactions.asked) == 2
    groups.ask(commit(("two", (0,)), producer_id=PRODUCER_ID + 1), version)
    assert len(transactions.asked) == 3
    groups.ask(commit(("two", (0,)), producer_epoch=1), version)
    assert len(transactions.asked) == 4


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 5, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_TXN_STATE, 5, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 5, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, 5, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 5, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NETWORK_EXCEPTION, 5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 0, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, 5, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 5, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_the_transaction_s_coordinator_refuses(
    groups: Groups, transactions: Transactions, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    """[139]: the producer gets an error that its version knows, and nothing is committed."""
    transactions.error = said
    assert error(groups, version) == told
    transactions.response = AddPartitionsToTxnResponse(error_code=said)
    assert error(groups, version) == told
    end_transaction(groups, committed=True)
    assert fetched(groups) == {}


def test_a_transaction_coordinator_that_answers_later(groups: Groups, transactions: Transactions) -> None:
    transactions.later = Deferred()
    seen = groups.send(commit(("two", (0,)), ("three", (0,))))
    assert seen == []
    transactions.later.callback(None)
    advance(groups.broker)
    assert errors(seen[0]) == {
        "three": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        "two": {0: ErrorCode.NONE},
    }


def test_what_does_not_exist_is_refused_first(groups: Groups) -> None:
    answer = groups.ask(commit(("two", (0, 9)), ("three", (0,)), ("two", (1,))))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(answer) == {"two": {9: unknown, 0: 0, 1: 0}, "three": {0: unknown}}
    assert [partition.partition_index for partition in answer.topics[0].partitions] == [9, 0, 1]


def test_without_existing_partitions_nobody_is_asked(groups: Groups, transactions: Transactions) -> None:
    """Not even the group id is checked."""
    assert errors(groups.ask(commit(("three", (0,)), group_id=""))) == {
        "three": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    }
    assert groups.ask(commit()).topics == ()
    assert transactions.asked == []


def test_no_transaction_is_asked_for_a_group_that_is_not_here(
    groups: Groups, transactions: Transactions
) -> None:
    """[126]"""
    assert errors(groups.ask(commit(("two", (0,)), group_id=""))) == {"two": {0: ErrorCode.INVALID_GROUP_ID}}
    groups.runtime.unload(groups.runtime.shard_for("group"))
    assert error(groups) == ErrorCode.NOT_COORDINATOR
    groups.runtime.stop()
    assert error(groups) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert transactions.asked == []


def test_a_group_s_error_is_that_of_its_partitions(groups: Groups) -> None:
    answer = groups.ask(commit(("two", (0, 9)), generation_id_or_member_epoch=3, member_id="m"))
    assert errors(answer) == {
        "two": {9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: ErrorCode.ILLEGAL_GENERATION}
    }


def test_topics_are_named_by_id(groups: Groups) -> None:
    """From v6 on (KIP-1319)."""
    topic_id = groups.broker.cluster.topics["two"].topic_id
    known = commit(("", (0, 9)))
    topics = (replace(known.topics[0], topic_id=topic_id), commit(("", (0,))).topics[0])
    answer = groups.ask(replace(known, topics=topics), 6)
    assert [
        (topic.topic_id, {part.partition_index: part.error_code for part in topic.partitions})
        for topic in answer.topics
    ] == [
        (topic_id, {9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: ErrorCode.NONE}),
        (UUID(int=0), {0: ErrorCode.UNKNOWN_TOPIC_ID}),
    ]
    end_transaction(groups, committed=True)
    assert fetched(groups) == {0: (5, 0)}


def test_a_group_that_is_unknown(groups: Groups) -> None:
    """From v6 on the client learns that the group, not the generation, is the fault."""
    topic_id = groups.broker.cluster.topics["two"].topic_id
    request = commit(("two", (0,)), generation_id_or_member_epoch=3, member_id="m")
    topics = (replace(request.topics[0], topic_id=topic_id),)
    answer = groups.ask(replace(request, topics=topics), 6)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
