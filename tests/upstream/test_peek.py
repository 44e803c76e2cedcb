"""The first bytes of requests, read without decoding them: the same as what decoding finds."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.upstream import peek
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.registry import VERSIONS, encode_request

TOPIC_ID = UUID(int=7 << 64 | 9)


def produce(
    version: int, client_id: str | None, transactional_id: str | None, acks: int, topics: Sequence[str] = ()
) -> bytes:
    header = RequestHeader(
        api_key=ApiKey.PRODUCE, api_version=version, correlation_id=-5, client_id=client_id
    )
    records = (PartitionProduceData(index=3, records=b"r" * 20),)
    data = tuple(TopicProduceData(name=name, topic_id=TOPIC_ID, partition_data=records) for name in topics)
    return encode_request(
        header, ProduceRequest(transactional_id=transactional_id, acks=acks, topic_data=data)
    )


ids = st.none() | st.text(max_size=200)


@given(
    st.sampled_from(VERSIONS[ApiKey.PRODUCE]),
    ids,
    ids,
    st.sampled_from([-1, 0, 1]),
    st.lists(st.text(max_size=200), max_size=200),
)
def test_a_produce(
    version: int, client_id: str | None, transactional_id: str | None, acks: int, topics: list[str]
) -> None:
    frame = produce(version, client_id, transactional_id, acks, topics)
    assert peek.head(frame) == (ApiKey.PRODUCE, version, -5)
    assert peek.client_id(frame) == (client_id or "")
    first = TOPIC_ID.bytes if version >= peek.FIRST_PRODUCE_BY_ID else "".join(topics[:1]).encode()
    assert peek.produce_head(frame, version) == (acks, len(topics), first if topics else b"")


def test_tagged_fields_of_the_header_are_skipped() -> None:
    frame = produce(9, "c", None, 1, ["t"])
    behind_client_id = 8 + 2 + 1
    assert frame[behind_client_id] == 0
    tagged = frame[:behind_client_id] + b"\2\0\3abc\x81\1\0" + frame[behind_client_id + 1 :]
    assert peek.produce_head(tagged, 9) == (1, 1, b"t")


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\x84\x80\x80\x80\x10", b"\x04\x00"])
def test_a_number_that_a_broker_reads_otherwise_is_not_read(size: bytes) -> None:
    """Kafka cuts it to 32 bits; the last one is written in more bytes than it needs, as Kafka allows."""
    frame = produce(9, "c", None, 1, ["t"])
    tagged = frame[:11] + b"\1\0" + size + b"abc" + frame[12:]
    assert (peek.produce_head(tagged, 9) is None) == (len(size) == 5)


def test_what_cannot_be_read_has_no_head() -> None:
    assert peek.produce_head(b"\0\0\0\x09\0\0\0\1\0\0" + b"\xff" * 20, 9) is None
    assert peek.produce_head(b"\0\0\0\x09\0\0\0\1\xff\xff\x01\0\xff\xff\xff\xff\x07", 9) is None


@pytest.mark.parametrize("version", [3, 9, 13])
def test_what_is_cut_has_no_head(version: int) -> None:
    frame = produce(version, "client", "transactional", -1, ["topic"])
    topic = TOPIC_ID.bytes if version >= peek.FIRST_PRODUCE_BY_ID else b"topic"
    end = frame.index(topic) + len(topic)
    for length in range(peek.HEAD_BYTES, end):
        assert peek.produce_head(frame[:length], version) is None
    assert peek.produce_head(frame[:end], version) == (-1, 1, topic)
