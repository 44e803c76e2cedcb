"""Offset requests with very many partitions take time in proportion to their number, not its square."""

from __future__ import annotations

import time
from typing import Any

import pytest

from schemas.error_code import ErrorCode
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
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.api.groups import Groups, join
from tests.api.harness import create

MANY = 20_000
LONGEST_S = 5
"""With quadratic time this takes minutes."""


def commit(*topics: tuple[str, range]) -> OffsetCommitRequest:
    partitions = {
        name: tuple(OffsetCommitRequestPartition(partition_index=index) for index in indexes)
        for name, indexes in topics
    }
    named = (OffsetCommitRequestTopic(name=name, partitions=partitions[name]) for name, _ in topics)
    return OffsetCommitRequest(group_id="group", generation_id_or_member_epoch=-1, topics=tuple(named))


def txn_commit(*topics: tuple[str, range]) -> TxnOffsetCommitRequest:
    named = (
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=tuple(TxnOffsetCommitRequestPartition(partition_index=index) for index in indexes),
        )
        for name, indexes in topics
    )
    return TxnOffsetCommitRequest(transactional_id="t", group_id="group", topics=tuple(named))


def delete(*topics: tuple[str, range]) -> OffsetDeleteRequest:
    named = (
        OffsetDeleteRequestTopic(
            name=name,
            partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes),
        )
        for name, indexes in topics
    )
    return OffsetDeleteRequest(group_id="group", topics=tuple(named))


@pytest.fixture
def groups() -> Groups:
    groups = Groups()
    create(groups.broker, "topic")
    groups.ask(join("group"))
    return groups


@pytest.mark.parametrize(
    ("request_of", "version"), [(commit, 8), (txn_commit, 5), (delete, 0)], ids=["commit", "txn", "delete"]
)
def test_it_costs_what_it_holds(groups: Groups, request_of: Any, version: int) -> None:
    began_s = time.process_time()
    (topic,) = groups.ask(request_of(("topic", range(1, MANY))), version).topics
    assert len(topic.partitions) == MANY - 1
    (topic,) = groups.ask(request_of(*[("nowhere", range(1))] * MANY), version).topics
    assert [each.error_code for each in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * MANY
    assert time.process_time() - began_s < LONGEST_S


@pytest.mark.parametrize(("request_of", "version"), [(commit, 8), (delete, 0)], ids=["commit", "delete"])
def test_the_pieces_of_a_request_are_answered_as_one(groups: Groups, request_of: Any, version: int) -> None:
    create(groups.broker, "second", 2000)
    request = request_of(("topic", range(3)), ("second", range(2000)), ("topic", range(3)))
    topics = groups.ask(request, version).topics
    assert {topic.name: len(topic.partitions) for topic in topics} == {"topic": 6, "second": 2000}
    (second,) = (topic for topic in topics if topic.name == "second")
    assert [each.partition_index for each in second.partitions] == list(range(2000))
