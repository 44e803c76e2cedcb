"""ListOffsets: the ends of a log, and offsets by time. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.list_offsets import list_offsets
from schemas.error_code import ErrorCode
from schemas.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from schemas.records.batch import Record, TimestampType, encode, set_max_timestamp
from tests.api.harness import (
    NOW_MS,
    AtOnce,
    HeldStore,
    advance,
    ask,
    collect,
    context,
    create,
    new_broker,
    result,
)

BATCHES = ((100, 200, 300), (1000, 900, 5000), (400, 500), (5000, 10))
NONE = (-1, -1, -1)


@pytest.fixture
def broker() -> Broker:
    """Topic t: ten records with the timestamps of BATCHES in partition 0, none in partition 1."""
    broker = new_broker()
    partition_no = create(broker, "t", 2).partitions[0].partition_no
    for timestamps in BATCHES:
        records = encode([Record(i, at_ms, b"k", b"v") for i, at_ms in enumerate(timestamps)])
        result(broker.log.append(partition_no, records, now_ms=NOW_MS))
    return broker


def look_up(
    broker: Broker, *partitions: tuple[int, int], version: int = 11, topic: str = "t", **more: Any
) -> tuple[ListOffsetsPartitionResponse, ...]:
    """partitions: (index, timestamp)."""
    isolation_level = more.pop("isolation_level", 0)
    asked = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, **more)
        for index, timestamp in partitions
    )
    topics = (ListOffsetsTopic(name=topic, partitions=asked),)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
    return tuple(ask(list_offsets, broker, request, version).topics[0].partitions)


def found(broker: Broker, timestamp: int, index: int = 0, **more: Any) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch)."""
    (answer,) = look_up(broker, (index, timestamp), **more)
    assert answer.error_code == ErrorCode.NONE
    return answer.timestamp, answer.offset, answer.leader_epoch


def error(broker: Broker, timestamp: int, index: int = 0, **more: Any) -> ErrorCode:
    (answer,) = look_up(broker, (index, timestamp), **more)
    assert (answer.timestamp, answer.offset, answer.leader_epoch) == NONE
    return ErrorCode(answer.error_code)


def test_the_ends(broker: Broker) -> None:
    for version in (1, 4, 11):
        assert found(broker, -1, version=version) == (-1, 10, 0)
        assert found(broker, -2, version=version) == (-1, 0, 0)
    assert found(broker, -4) == (-1, 0, 0)
    assert found(broker, -1, isolation_level=1) == (-1, 10, 0)


def test_the_ends_of_an_empty_log(broker: Broker) -> None:
    assert [found(broker, special, 1) for special in (-1, -2, -4)] == [(-1, 0, 0)] * 3
    assert [found(broker, special, 1) for special in (-3, -5, -6, 0)] == [NONE] * 4


def test_the_largest_timestamp_and_the_first_record_that_has_it(broker: Broker) -> None:
    assert found(broker, -3) == (5000, 5, 0)


def test_without_tiered_storage_nothing_is_there(broker: Broker) -> None:
    assert [found(broker, special) for special in (-5, -6)] == [NONE, NONE]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (100, 0, 0)),
        (100, (100, 0, 0)),
        (101, (200, 1, 0)),
        (301, (1000, 3, 0)),
        (901, (1000, 3, 0)),
        (1001, (5000, 5, 0)),
        (5000, (5000, 5, 0)),
        (5001, NONE),
    ],
)
def test_by_time_it_is_the_first_record_that_is_not_older(
    broker: Broker, timestamp: int, expected: tuple[int, int, int]
) -> None:
    assert found(broker, timestamp) == expected


@pytest.mark.parametrize(("special", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
def test_a_special_timestamp_of_a_later_version(broker: Broker, special: int, since: int) -> None:
    assert error(broker, special, version=min(since, 12) - 1) == ErrorCode.UNSUPPORTED_VERSION
    assert error(broker, -7, topic="nope") == ErrorCode.UNSUPPORTED_VERSION


def test_unknown_partitions(broker: Broker) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [error(broker, -1, index) for index in (2, -1)] == [unknown, unknown]
    assert error(broker, -1, topic="nope") == unknown


def test_leader_epochs(broker: Broker) -> None:
    assert found(broker, -1, current_leader_epoch=0) == (-1, 10, 0)
    assert error(broker, -1, current_leader_epoch=1) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error(broker, 5, current_leader_epoch=1) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error(broker, -1, current_leader_epoch=-2) == ErrorCode.FENCED_LEADER_EPOCH


def test_an_unknown_isolation_level(broker: Broker) -> None:
    assert error(broker, -1, isolation_level=7) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_partition_named_twice_is_refused_once(broker: Broker) -> None:
    answers = look_up(broker, (0, -1), (0, -2), (1, -2))
    assert [(answer.partition_index, answer.error_code) for answer in answers] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]


def test_latest_is_what_is_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    made = broker.cluster.auto_create_topics(["t"])
    store.release_all()
    partition_no = result(made)["t"].partitions[0].partition_no
    broker.log.append(partition_no, encode([Record(0, 1, b"k", b"v")]), now_ms=NOW_MS)
    assert found(broker, -1) == (-1, 0, 0)
    store.release_all()
    assert found(broker, -1) == (-1, 1, 0)


def test_a_long_search_is_done_in_slices(broker: Broker) -> None:
    """No record is as late as the headers promise, so that all batches are decoded."""
    partition_no = broker.cluster.topics["t"].partitions[1].partition_no
    records = bytearray(encode([Record(offset, 100, None, b"") for offset in range(4000)]))
    set_max_timestamp(records, 0, TimestampType.CREATE_TIME, 10**12)
    for _ in range(5):
        result(broker.log.append(partition_no, bytes(records), now_ms=NOW_MS))
    asked = ListOffsetsPartition(partition_index=1, timestamp=101)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(asked,)),))
    caller = context(11)
    answer = collect(list_offsets(broker, caller, request))
    assert caller.turn.is_alone
    assert answer == []
    advance(broker)
    (partition,) = answer[0].topics[0].partitions
    assert (partition.error_code, partition.offset) == (ErrorCode.NONE, -1)


def test_a_short_search_does_not_keep_other_requests_waiting(broker: Broker) -> None:
    asked = (ListOffsetsPartition(partition_index=0, timestamp=400),)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=asked),))
    caller = context(11)
    (answer,) = collect(list_offsets(broker, caller, request))
    assert answer.topics[0].partitions[0].offset == 3
    assert not caller.turn.is_alone


def test_a_batch_of_many_records_is_searched_aside(broker: Broker) -> None:
    partition_no = broker.cluster.topics["t"].partitions[1].partition_no
    records = encode([Record(offset, 100 + offset, None, b"") for offset in range(6000)])
    result(broker.log.append(partition_no, records, now_ms=NOW_MS))
    aside = AtOnce()
    broker = replace(broker, aside=aside)
    assert found(broker, 3100, 1) == (3100, 3000, 0)
    assert aside.count == 1
