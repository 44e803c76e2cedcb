"""A reader with a broker that is played by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kshim.client.cluster import Cluster
from kshim.client.faults import ClientError, Refused
from kshim.client.reader import Reader
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from schemas.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.client.answers import data_of, metadata
from tests.client.broker import PlayedBroker

NAME = ("orders", 0)


class World:
    """A broker that gives the answers of the test, each to one Fetch."""

    def __init__(self, *answers: PartitionData | None) -> None:
        self._answers = list(answers)
        self.notices: list[str] = []
        self.asked: list[int] = []

    @contextmanager
    def reader(self, position: int = 0, end: int | None = None) -> Iterator[Reader]:
        answers = {
            ApiKey.METADATA: lambda header, request: metadata(broker.port),
            ApiKey.FETCH: self._fetch,
            ApiKey.LIST_OFFSETS: self._list_offsets,
        }
        with PlayedBroker(answers) as broker, Cluster(broker.settings()) as cluster:
            ends = None if end is None else {NAME: end}
            yield Reader(cluster, {NAME: position}, ends=ends, notice=self.notices.append)

    def _fetch(self, header: Any, request: Any) -> Any:
        self.asked.append(request.topics[0].partitions[0].fetch_offset)
        found = self._answers.pop(0)
        if found is None:
            return None
        return FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(found,)),))

    def _list_offsets(self, header: Any, request: Any) -> ListOffsetsResponse:
        first = ListOffsetsPartitionResponse(partition_index=0, offset=50)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=(first,)),))


def answer(data: bytes = b"", error: ErrorCode = ErrorCode.NONE) -> PartitionData:
    return PartitionData(partition_index=0, records=data, error_code=error)


def values(reader: Reader) -> list[bytes | None]:
    found = []
    while not reader.is_at_end:
        found += [record.value for record in reader.poll(5)]
    return found


def test_reads_to_the_end_and_no_further() -> None:
    world = World(answer(data_of(0, b"a", b"b")), answer(), answer(data_of(2, b"c", b"d")))
    with world.reader(end=3) as reader:
        assert values(reader) == [b"a", b"b", b"c"]
        assert reader.positions == {NAME: 3}
    assert world.asked == [0, 2, 2]


def test_nothing_is_asked_for_if_nothing_is_there() -> None:
    world = World()
    with world.reader(position=3, end=3) as reader:
        assert values(reader) == []
    assert world.asked == []


def test_the_position_is_behind_the_record_that_was_used() -> None:
    with World(answer(data_of(0, b"a", b"b"))).reader(end=2) as reader:
        records = reader.poll(5)
        next(records)
        assert reader.positions == {NAME: 1}


@pytest.mark.parametrize("first", [answer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), None])
def test_a_leader_that_is_none_or_is_lost_is_asked_for_anew(first: PartitionData | None) -> None:
    world = World(first, answer(data_of(0, b"a")))
    with world.reader(end=1) as reader:
        assert values(reader) == [b"a"]
    assert world.asked == [0, 0]


def test_deleted_records_are_told_and_passed_over() -> None:
    world = World(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), answer(data_of(50, b"a")))
    with world.reader(position=7, end=51) as reader:
        assert values(reader) == [b"a"]
    assert world.notices == ["orders-0: the records 7 to 49 are deleted"]


def test_a_refusal_ends_reading() -> None:
    world = World(answer(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with world.reader(end=1) as reader, pytest.raises(Refused, match="orders-0: TOPIC_AUTHORIZATION_FAILED"):
        values(reader)


def test_a_batch_that_cannot_be_read_is_one_line() -> None:
    data = bytearray(data_of(0, b"a" * 100))
    data[70] ^= 0xFF
    with (
        World(answer(bytes(data))).reader(end=1) as reader,
        pytest.raises(ClientError, match="orders-0: the batch at offset 0: its checksum"),
    ):
        values(reader)
