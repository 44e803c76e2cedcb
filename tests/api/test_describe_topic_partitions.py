"""DescribeTopicPartitions: pages of topics. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kshim.answering import Broker
from kshim.answering.authorized_operations import TOPIC_OPERATIONS
from kshim.api.describe_topic_partitions import describe_topic_partitions
from schemas.error_code import ErrorCode
from schemas.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.api.harness import ask, create, new_broker

NOT_ASKED_FOR = -(1 << 31)
Page = tuple[dict[str, list[int]], tuple[str, int] | None]


@pytest.fixture
def broker() -> Broker:
    broker = new_broker(offsets_topic_num_partitions=1)
    for name, partitions in (("bb", 2), ("aa", 3), ("cc", 1)):
        create(broker, name, partitions)
    return broker


def describe(
    broker: Broker, names: Sequence[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )
    answer = ask(describe_topic_partitions, broker, request, 0)
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    return answer


def page(answer: DescribeTopicPartitionsResponse) -> Page:
    topics = {
        topic.name or "": [partition.partition_index for partition in topic.partitions]
        for topic in answer.topics
    }
    cursor = answer.next_cursor
    return topics, (cursor.topic_name, cursor.partition_index) if cursor else None


A, B = [0, 1, 2], [0, 1]
PAGES: list[tuple[list[str], int, tuple[str, int] | None, Page]] = [
    (["bb", "aa"], 2000, None, ({"aa": A, "bb": B}, None)),
    (["aa", "aa"], 2000, None, ({"aa": A}, None)),
    (["bb", "aa"], 2, None, ({"aa": [0, 1]}, ("aa", 2))),
    (["bb", "aa"], 3, None, ({"aa": A}, ("bb", 0))),
    (["aa"], 3, None, ({"aa": A}, None)),
    (["bb", "aa"], 2, ("aa", 2), ({"aa": [2], "bb": [0]}, ("bb", 1))),
    ([], 2, ("aa", 2), ({"aa": [2], "bb": [0]}, ("bb", 1))),
    ([], 9, ("ab", 7), ({"bb": B, "cc": [0]}, None)),
    (["aa"], 0, None, ({"aa": [0]}, ("aa", 1))),
    (["aa"], -1, None, ({"aa": [0]}, ("aa", 1))),
    (["aa"], 5, ("aa", 9), ({"aa": []}, None)),
    (["nope", "aa"], 3, None, ({"aa": A}, ("nope", 0))),
    ([], 1, ("zz", 0), ({}, None)),
]


@pytest.mark.parametrize(("names", "limit", "cursor", "expected"), PAGES)
def test_pages(
    broker: Broker, names: list[str], limit: int, cursor: tuple[str, int] | None, expected: Page
) -> None:
    assert page(describe(broker, names, limit, cursor)) == expected


def test_all_pages_together_are_everything(broker: Broker) -> None:
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(20):
        topics, cursor = page(describe(broker, [], 1, cursor))
        seen += [(name, index) for name, indexes in topics.items() for index in indexes]
        if cursor is None:
            break
    assert seen == [
        ("__consumer_offsets", 0),
        *(("aa", index) for index in A),
        *(("bb", index) for index in B),
        ("cc", 0),
    ]


@pytest.mark.parametrize("cursor", [("zz", 0), ("ab", 0), ("", 0), ("aa", -1)])
def test_a_cursor_that_is_not_in_what_is_asked_for(broker: Broker, cursor: tuple[str, int]) -> None:
    answer = describe(broker, ["aa", "bb"], cursor=cursor)
    assert [(t.name, t.error_code, t.topic_authorized_operations) for t in answer.topics] == [
        ("aa", ErrorCode.INVALID_REQUEST, NOT_ASKED_FOR),
        ("bb", ErrorCode.INVALID_REQUEST, NOT_ASKED_FOR),
    ]
    assert answer.next_cursor is None


def test_every_entry_is_refused_where_one_is(broker: Broker) -> None:
    answer = describe(broker, ["aa", "bb", "aa"], cursor=("zz", 0))
    assert [topic.name for topic in answer.topics] == ["aa", "bb", "aa"]


def test_an_empty_name(broker: Broker) -> None:
    """Without a cursor Apache Kafka fails every entry; with one it refuses only this one."""
    answer = describe(broker, ["aa", "", "aa"])
    assert [(t.name, t.error_code, t.topic_authorized_operations) for t in answer.topics] == [
        (name, ErrorCode.UNKNOWN_SERVER_ERROR, NOT_ASKED_FOR) for name in ("aa", "", "aa")
    ]
    answer = describe(broker, ["aa", ""], cursor=("", 0))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("aa", 0),
    ]
    assert page(describe(broker, ["aa", ""], cursor=("aa", 0))) == ({"aa": A}, None)


def test_a_topic_and_its_partitions(broker: Broker) -> None:
    (topic,) = describe(broker, ["cc"]).topics
    assert (topic.error_code, topic.topic_id) == (0, broker.cluster.topics["cc"].topic_id)
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, TOPIC_OPERATIONS)
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes) == (1, 0, (1,))
    assert (partition.isr_nodes, partition.offline_replicas) == ((1,), ())
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())
    assert describe(broker, ["__consumer_offsets"]).topics[0].is_internal


def test_topics_that_are_not_there(broker: Broker) -> None:
    answer = describe(broker, ["nope", "a b"])
    assert [(topic.name, topic.error_code, topic.topic_authorized_operations) for topic in answer.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, TOPIC_OPERATIONS),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC_OPERATIONS),
    ]
