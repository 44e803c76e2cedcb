"""DescribeLogDirs: the partitions in the only directory, and their sizes. Facts: Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from kshim.answering import Broker
from kshim.api.describe_log_dirs import describe_log_dirs
from kshim.cluster import NewTopic
from kshim.storage.interfaces import Appended
from schemas.error_code import ErrorCode
from schemas.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.api.configs import BROKER, SET, alter
from tests.api.harness import NOW_MS, batch, collect, context, create, new_broker, result

Wanted = Sequence[tuple[str, Sequence[int]]]


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    broker = new_broker(log_dirs=str(tmp_path), offsets_topic_num_partitions=1)
    create(broker, "t", 2)
    create(broker, "u")
    return broker


def append(broker: Broker, topic: str, index: int, records: bytes) -> Appended:
    partition_no = broker.cluster.topics[topic].partitions[index].partition_no
    appended = result(broker.log.append(partition_no, records, now_ms=NOW_MS))
    assert isinstance(appended, Appended)
    return appended


def describe(broker: Broker, wanted: Wanted | None, version: int = 4) -> DescribeLogDirsResult:
    topics = None
    if wanted is not None:
        topics = tuple(DescribableLogDirTopic(topic=name, partitions=tuple(of)) for name, of in wanted)
    seen = collect(describe_log_dirs(broker, context(version), DescribeLogDirsRequest(topics=topics)))
    assert isinstance(broker.clock, Clock)
    while not seen:
        broker.clock.advance(0)
    (answer,) = seen[0].results
    assert (seen[0].error_code, answer.error_code) == (0, 0)
    assert isinstance(answer, DescribeLogDirsResult)
    return answer


def sizes(answer: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    assert not any(
        each.offset_lag or each.is_future_key for topic in answer.topics for each in topic.partitions
    )
    return {
        (t.name, each.partition_index): each.partition_size for t in answer.topics for each in t.partitions
    }


def test_the_bytes_of_every_partition(broker: Broker, tmp_path: Path) -> None:
    first, second = batch(b"x" * 100), batch(b"y" * 3000)
    append(broker, "t", 1, first)
    append(broker, "t", 1, second)
    answer = describe(broker, None)
    size = len(first) + len(second)
    assert sizes(answer) == {("__consumer_offsets", 0): 0, ("t", 0): 0, ("t", 1): size, ("u", 0): 0}
    assert answer.log_dir == str(tmp_path)
    assert answer.total_bytes >= answer.usable_bytes > 0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], set()),
        ([("t", ())], set()),
        ([("t", (0, 7)), ("nope", (0,))], {("t", 0)}),
        ([("t", (0,)), ("u", (0,)), ("t", (1,)), ("t", (0,))], {("t", 0), ("t", 1), ("u", 0)}),
    ],
)
def test_what_is_named(broker: Broker, wanted: Wanted, expected: set[tuple[str, int]]) -> None:
    answer = describe(broker, wanted)
    assert set(sizes(answer)) == expected
    assert len({topic.name for topic in answer.topics}) == len(answer.topics)


def test_a_broker_tells_of_its_own_replicas() -> None:
    broker = new_broker(brokers=2, log_dirs=":memory:")
    new = NewTopic("t", assignments=[(0, (1,)), (1, (2,)), (2, (1,))])
    result(broker.cluster.create_topics([new]))
    answer = describe(broker, [("t", (0, 1, 2))])
    assert [index for _, index in sizes(answer)] == [0, 2]
    assert (answer.log_dir, answer.total_bytes, answer.usable_bytes) == (":memory:", -1, -1)


def test_a_cordoned_directory(broker: Broker, tmp_path: Path) -> None:
    assert describe(broker, [], 5).is_cordoned is False
    assert alter(broker, (BROKER, "1", [("cordoned.log.dirs", SET, str(tmp_path))])) == [
        (ErrorCode.NONE, None)
    ]
    assert describe(broker, [], 5).is_cordoned is True
