"""A producer with a broker that is played by hand: batches, refusals, and what is sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from kshim.client.cluster import Cluster
from kshim.client.faults import ClientError
from kshim.client.producer import ALL, Producer, Settings
from kshim.client.record import NewRecord, NotWritten, Written
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdResponse
from schemas.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from schemas.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from schemas.records import batch
from schemas.records.compression import Compression
from tests.client.answers import metadata
from tests.client.broker import PlayedBroker

Sent = tuple[batch.RecordBatchHeader, list[bytes | None]]


class World:
    """A broker that answers each Produce as the test says, and keeps the batches that it was sent."""

    def __init__(self, *answers: Callable[[Sent], PartitionProduceResponse | None]) -> None:
        self._answers = list(answers)
        self.sent: list[Sent] = []
        self.producer_ids = 0
        self.written = 0

    @contextmanager
    def producer(self, acks: int = ALL, compression: Compression = Compression.NONE) -> Iterator[Producer]:
        answers = {
            ApiKey.METADATA: lambda header, request: metadata(broker.port),
            ApiKey.INIT_PRODUCER_ID: self._give_id,
            ApiKey.PRODUCE: self._produce,
        }
        with PlayedBroker(answers) as broker, Cluster(broker.settings()) as cluster:
            yield Producer(cluster, "orders", Settings(acks, compression), random=Random(1), now_ms=lambda: 9)

    def _give_id(self, header: Any, request: Any) -> InitProducerIdResponse:
        self.producer_ids += 1
        return InitProducerIdResponse(producer_id=1000 + self.producer_ids)

    def _produce(self, header: Any, request: ProduceRequest) -> Any:
        ((of_partition,),) = (topic.partition_data for topic in request.topic_data)
        data = bytes(of_partition.records or b"")
        sent = batch.validate(data), [record.value for record in batch.records(data)]
        self.sent.append(sent)
        answer = self._answers.pop(0) if self._answers else written
        found = answer(sent)
        if request.acks == 0:
            return b""
        if found is None:
            return None
        return ProduceResponse(responses=(TopicProduceResponse(name="orders", partition_responses=(found,)),))


def written(sent: Sent) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=0, error_code=0, base_offset=sent[0].base_sequence + 100)


def refused(error: ErrorCode, *wrong: int) -> Callable[[Sent], PartitionProduceResponse]:
    errors = tuple(BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message="bad") for at in wrong)
    return lambda sent: PartitionProduceResponse(
        index=0, error_code=error, base_offset=-1, record_errors=errors, error_message="no"
    )


def values(*some: bytes) -> list[NewRecord]:
    return [NewRecord(None, each, number=number) for number, each in enumerate(some, 1)]


def write(producer: Producer, records: list[NewRecord]) -> tuple[list[Written], list[tuple[int, str]]]:
    """Write records; return what was written, and the number of each other record with the reason."""
    settled = [each for record in records for each in producer.add(record)] + list(producer.flush())
    return (
        [each for each in settled if isinstance(each, Written)],
        [(each.record.number, each.why) for each in settled if isinstance(each, NotWritten)],
    )


@pytest.mark.parametrize("codec", list(Compression))
def test_records_are_one_batch_with_sequence_numbers(codec: Compression) -> None:
    world = World()
    with world.producer(compression=codec) as producer:
        ((_, base_offset, records),), _ = write(producer, values(b"a", b"b"))
        assert (base_offset, [each.value for each in records]) == (100, [b"a", b"b"])
        write(producer, values(b"c"))
    (first, sent), (second, _) = world.sent
    assert sent == [b"a", b"b"]
    assert (first.compression, first.producer_id, first.base_sequence, first.base_timestamp) == (
        *(codec, 1001, 0, 9),
    )
    assert second.base_sequence == 2


def test_a_batch_whose_answer_was_lost_is_sent_again_with_its_numbers() -> None:
    world = World(lambda sent: None, refused(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    with world.producer() as producer:
        ((_, base_offset, records),), _ = write(producer, values(b"a"))
    assert (base_offset, len(records)) == (-1, 1)
    assert [header.base_sequence for header, _ in world.sent] == [0, 0]
    assert world.producer_ids == 1


def test_a_retriable_error_is_tried_again() -> None:
    world = World(refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), refused(ErrorCode.NOT_ENOUGH_REPLICAS))
    with world.producer() as producer:
        assert len(write(producer, values(b"a"))[0]) == 1
    assert [sent for _, sent in world.sent] == [[b"a"]] * 3


def test_a_broker_that_has_forgotten_the_producer_gets_a_new_one() -> None:
    world = World(refused(ErrorCode.UNKNOWN_PRODUCER_ID))
    with world.producer() as producer:
        assert len(write(producer, values(b"a"))[0]) == 1
    assert [header.producer_id for header, _ in world.sent] == [1001, 1002]


def test_a_batch_that_is_too_large_is_halved_in_order() -> None:
    world = World(refused(ErrorCode.MESSAGE_TOO_LARGE), written, refused(ErrorCode.MESSAGE_TOO_LARGE))
    with world.producer() as producer:
        _, refusals = write(producer, values(b"a", b"b", b"c", b"d"))
    assert [sent for _, sent in world.sent] == [
        *([b"a", b"b", b"c", b"d"], [b"a", b"b"]),
        *([b"c", b"d"], [b"c"], [b"d"]),
    ]
    assert [header.base_sequence for header, _ in world.sent] == [0, 0, 2, 2, 3]
    assert refusals == []


def test_one_record_that_is_too_large_is_refused() -> None:
    world = World(refused(ErrorCode.MESSAGE_TOO_LARGE))
    with world.producer() as producer:
        assert write(producer, values(b"a")) == ([], [(1, "MESSAGE_TOO_LARGE: no")])


def test_of_a_batch_only_the_wrong_records_are_refused() -> None:
    world = World(refused(ErrorCode.INVALID_RECORD, 1, 2))
    with world.producer() as producer:
        (done,), refusals = write(producer, values(b"a", b"b", b"c", b"d"))
    assert [each.value for each in done.records] == [b"a", b"d"]
    assert refusals == [(2, "INVALID_RECORD: bad"), (3, "INVALID_RECORD: bad")]


def test_a_refusal_of_the_whole_batch_names_each_record() -> None:
    world = World(refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with world.producer() as producer:
        done, refusals = write(producer, values(b"a", b"b"))
        assert (done, [number for number, _ in refusals]) == ([], [1, 2])
        assert len(write(producer, values(b"c"))[0]) == 1


def test_without_acknowledgements_no_answer_is_awaited() -> None:
    world = World()
    with world.producer(acks=0) as producer:
        ((_, base_offset, _),), _ = write(producer, values(b"a"))
    assert (base_offset, world.producer_ids, world.sent[0][0].producer_id) == (-1, 0, -1)


def test_a_topic_that_does_not_exist_is_told_with_those_that_are_like_it() -> None:
    def answer(header: Any, request: Any) -> MetadataResponse:
        if request.topics is None:
            return metadata(broker.port)
        missing = MetadataResponseTopic(name="ordrs", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port),),
            topics=(missing,),
        )

    with (
        PlayedBroker({ApiKey.METADATA: answer}) as broker,
        Cluster(broker.settings()) as cluster,
        pytest.raises(ClientError, match=r"no topic ordrs; did you mean orders\?"),
    ):
        Producer(cluster, "ordrs", Settings())
