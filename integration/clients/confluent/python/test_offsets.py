"""One consumer and its offsets: committed, stored, looked up, moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)

from integration.clients.confluent.python.clients import ANSWER_S, name_of, offsets, poll_until, receive, send

FIRST_MS, STEP_MS = 1_000_000, 1000


@pytest.fixture
def topic_of_ten(new_topic: Callable[..., str], producer: Producer) -> str:
    """A topic of two partitions; the first has records 0 to 9, at intervals of a second."""
    name = new_topic(2)
    for number in range(10):
        send(producer, name, str(number), partition=0, timestamp=FIRST_MS + number * STEP_MS)
    return name


@pytest.fixture
def consumer(new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str) -> Consumer:
    """A consumer of the group, with partition 0 from its start."""
    consumer = new_consumer(group_id)
    consumer.assign([TopicPartition(topic_of_ten, 0, OFFSET_BEGINNING)])
    return consumer


def values(messages: list[Any]) -> list[int]:
    return [int(message.value()) for message in messages]


def test_commits_and_what_is_committed(
    consumer: Consumer, new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str
) -> None:
    first, second = TopicPartition(topic_of_ten, 0), TopicPartition(topic_of_ten, 1)
    assert offsets(consumer.committed([first, second], ANSWER_S)) == {0: OFFSET_INVALID, 1: OFFSET_INVALID}
    messages = receive(consumer, 5)
    assert offsets(consumer.commit(messages[2], asynchronous=False)) == {0: 3}
    assert offsets(consumer.committed([first], ANSWER_S)) == {0: 3}
    assert offsets(consumer.commit(asynchronous=False)) == {0: len(messages)}  # the position

    noted = [TopicPartition(topic_of_ten, 0, 7, "noted"), TopicPartition(topic_of_ten, 1, 0, "ä" * 50)]
    assert offsets(consumer.commit(offsets=noted, asynchronous=False)) == {0: 7, 1: 0}
    other = new_consumer(group_id)
    found = other.committed([first, second], ANSWER_S)
    assert offsets(found) == {0: 7, 1: 0}
    assert [partition.metadata for partition in found] == ["noted", "ä" * 50]


def test_commits_that_are_not_waited_for(
    new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str
) -> None:
    told: list[tuple[Any, dict[int, int]]] = []
    consumer = new_consumer(group_id, on_commit=lambda error, tps: told.append((error, offsets(tps))))
    consumer.assign([TopicPartition(topic_of_ten, 0, OFFSET_BEGINNING)])
    receive(consumer, 1)
    consumer.commit(offsets=[TopicPartition(topic_of_ten, 0, 4)])
    poll_until(lambda: told, consumer, what="on_commit is called")
    assert told == [(None, {0: 4})]
    assert offsets(consumer.committed([TopicPartition(topic_of_ten, 0)], ANSWER_S)) == {0: 4}


def test_a_commit_that_is_refused(consumer: Consumer, topic_of_ten: str, topic: str) -> None:
    def error_of(partition: TopicPartition) -> str:
        try:
            (told,) = consumer.commit(offsets=[partition], asynchronous=False)
        except KafkaException as error:
            return name_of(error)
        return name_of(told.error)

    assert error_of(TopicPartition(f"{topic}-unknown", 0, 1)) == "UNKNOWN_TOPIC_OR_PART"
    assert error_of(TopicPartition(topic_of_ten, 0, 1, "x" * 5000)) == "OFFSET_METADATA_TOO_LARGE"


def test_a_commit_of_somebody_else_while_a_member_lives(
    new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str
) -> None:
    member = new_consumer(group_id)
    member.subscribe([topic_of_ten])
    poll_until(lambda: member.assignment(), member, what="a member lives")
    stranger = new_consumer(group_id)
    with pytest.raises(KafkaException) as raised:
        stranger.commit(offsets=[TopicPartition(topic_of_ten, 0, 1)], asynchronous=False)
    assert name_of(raised.value) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("how", ["on close", "in time"])
def test_stored_offsets_are_committed(
    how: str, new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str
) -> None:
    consumer = new_consumer(
        group_id,
        enable_auto_commit=True,
        enable_auto_offset_store=False,
        auto_commit_interval_ms=100 if how == "in time" else 60_000,
    )
    consumer.subscribe([topic_of_ten])
    messages = sorted(receive(consumer, 10), key=lambda message: message.offset())
    assert values(messages) == list(range(10))
    consumer.store_offsets(messages[4])
    consumer.store_offsets(offsets=[TopicPartition(topic_of_ten, 0, 6)])
    watcher, partition = new_consumer(group_id), TopicPartition(topic_of_ten, 0)
    if how == "on close":
        consumer.close()
        assert offsets(watcher.committed([partition], ANSWER_S)) == {0: 6}
    else:
        poll_until(
            lambda: offsets(watcher.committed([partition], ANSWER_S)) == {0: 6}, consumer, what="committed"
        )


def test_a_later_consumer_begins_at_the_committed_offset(
    consumer: Consumer, new_consumer: Callable[..., Consumer], group_id: str, topic_of_ten: str
) -> None:
    consumer.commit(offsets=[TopicPartition(topic_of_ten, 0, 8)], asynchronous=False)
    later = new_consumer(group_id)
    later.subscribe([topic_of_ten])
    assert values(receive(later, 2)) == [8, 9]


def test_offsets_for_times(consumer: Consumer, topic_of_ten: str) -> None:
    def found(partition: int, timestamp_ms: int) -> int:
        asked = [TopicPartition(topic_of_ten, partition, timestamp_ms)]
        return offsets(consumer.offsets_for_times(asked, ANSWER_S))[partition]

    assert found(0, 0) == 0
    assert found(0, FIRST_MS + 3 * STEP_MS) == 3
    assert found(0, FIRST_MS + 3 * STEP_MS + 1) == 4
    assert found(0, FIRST_MS + 10 * STEP_MS) == OFFSET_END
    assert found(1, 0) == OFFSET_END


def test_watermarks(consumer: Consumer, topic_of_ten: str) -> None:
    first, second = TopicPartition(topic_of_ten, 0), TopicPartition(topic_of_ten, 1)
    assert consumer.get_watermark_offsets(first, ANSWER_S) == (0, 10)
    assert consumer.get_watermark_offsets(second, ANSWER_S) == (0, 0)
    receive(consumer, 1)
    poll_until(
        lambda: consumer.get_watermark_offsets(first, cached=True)[1] == 10, consumer, what="as fetched"
    )
    with pytest.raises(KafkaException):
        consumer.get_watermark_offsets(TopicPartition(topic_of_ten, 7), ANSWER_S)


def test_positions_and_seeks(consumer: Consumer, topic_of_ten: str) -> None:
    partition = TopicPartition(topic_of_ten, 0)
    assert offsets(consumer.position([partition])) == {0: OFFSET_INVALID}
    messages = receive(consumer, 10)
    assert values(messages) == list(range(10))
    assert offsets(consumer.position([partition])) == {0: 10}
    consumer.seek(TopicPartition(topic_of_ten, 0, 7))
    assert values(receive(consumer, 3)) == [7, 8, 9]
    consumer.seek(TopicPartition(topic_of_ten, 0, OFFSET_BEGINNING))
    assert values(receive(consumer, 10)) == list(range(10))


def test_pause_and_resume(consumer: Consumer, producer: Producer, topic_of_ten: str) -> None:
    receive(consumer, 10)
    partitions = [TopicPartition(topic_of_ten, 0)]
    consumer.pause(partitions)
    send(producer, topic_of_ten, b"10", partition=0)
    assert consumer.poll(0.5) is None
    consumer.resume(partitions)
    assert values(receive(consumer, 1)) == [10]


def test_partitions_that_are_given_one_by_one(
    consumer: Consumer, producer: Producer, topic_of_ten: str
) -> None:
    receive(consumer, 10)
    send(producer, topic_of_ten, b"0", b"1", partition=1)
    consumer.incremental_assign([TopicPartition(topic_of_ten, 1, 1)])
    assert values(receive(consumer, 1)) == [1]
    consumer.incremental_unassign([TopicPartition(topic_of_ten, 0)])
    assert [partition.partition for partition in consumer.assignment()] == [1]
    consumer.unassign()
    assert consumer.assignment() == []


def test_many_at_once_up_to_the_end(new_consumer: Callable[..., Consumer], topic_of_ten: str) -> None:
    consumer = new_consumer(enable_partition_eof=True)
    consumer.assign([TopicPartition(topic_of_ten, 0, 2)])
    came: list[Any] = []
    poll_until(lambda: came.extend(consumer.consume(100, 0.1)) or len(came) > 8, what="all, and the end")
    assert values(came[:8]) == list(range(2, 10))
    assert (name_of(came[8].error()), came[8].offset()) == ("_PARTITION_EOF", 10)


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 10), ("error", None)])
def test_an_offset_that_is_not_there(
    reset: str,
    first: int | None,
    new_consumer: Callable[..., Consumer],
    producer: Producer,
    topic_of_ten: str,
) -> None:
    consumer = new_consumer(auto_offset_reset=reset)
    partition = TopicPartition(topic_of_ten, 0)
    consumer.assign([TopicPartition(topic_of_ten, 0, 99)])
    if first is None:
        with pytest.raises(KafkaException) as raised:
            receive(consumer, 1)
        assert name_of(raised.value) == "_AUTO_OFFSET_RESET"
    elif reset == "earliest":
        assert values(receive(consumer, 10)) == list(range(10))
    else:
        came: list[Any] = []

        def arrived() -> bool:
            send(producer, topic_of_ten, b"more", partition=0)
            message = consumer.poll(0.1)
            came.extend([message] if message is not None else [])
            return bool(came)

        poll_until(arrived, what="what is sent later")
        assert came[0].offset() >= first
        assert offsets(consumer.position([partition]))[0] == came[0].offset() + 1
