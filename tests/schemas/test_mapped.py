"""A mapped array is its tuple: equal, and the same bytes."""

import tracemalloc

import pytest

from schemas.mapped import Chained, Mapped, Written
from schemas.message import TooManyElements
from schemas.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from schemas.registry import MESSAGES, encode_response

METADATA, VERSION = 3, 9
MANY = 20_000


def partition(index: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=(1,), isr_nodes=(1,))


def test_it_equals_its_tuple() -> None:
    mapped = Mapped(partition, range(3))
    made = tuple(map(partition, range(3)))
    assert mapped == made
    assert made == mapped
    assert mapped == Mapped(partition, (0, 1, 2))
    assert mapped != made[:2]
    assert (len(mapped), mapped[1], tuple(mapped[1:]), hash(mapped)) == (3, made[1], made[1:], hash(made))
    assert repr(mapped) == repr(made)


def test_a_chain_equals_the_tuple_of_its_parts() -> None:
    made = tuple(map(partition, range(5)))
    chained = Chained(made[:2], Mapped(partition, range(2, 5)))
    assert chained == made
    assert chained == Mapped(partition, range(5))
    assert (len(chained), chained[4], chained[1:3], hash(chained)) == (5, made[4], made[1:3], hash(made))
    topics = [MetadataResponseTopic(name="a", partitions=each) for each in (chained, made)]
    one, other = (encode_response(METADATA, VERSION, 7, MetadataResponse(topics=(each,))) for each in topics)
    assert one == other


def test_a_long_message_is_written_in_little_more_memory_than_its_bytes() -> None:
    topics = tuple(
        MetadataResponseTopic(name=name, partitions=Mapped(partition, range(MANY))) for name in "ab"
    )
    response = MetadataResponse(topics=topics)
    encode_response(METADATA, VERSION, 7, response)
    tracemalloc.start()
    data = encode_response(METADATA, VERSION, 7, response)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    struct = MESSAGES[METADATA][1].struct(VERSION)
    assert data == b"\0\0\0\7\0" + struct.build(response)
    assert peak_bytes < 2 * len(data) + 3_000_000


def test_a_written_array_is_written_once() -> None:
    made: list[int] = []

    def note(index: int) -> MetadataResponsePartition:
        made.append(index)
        return partition(index)

    written = Written(note, range(200))
    topics = tuple(MetadataResponseTopic(name=name, partitions=written) for name in "ab")
    mapped = tuple(
        MetadataResponseTopic(name=name, partitions=Mapped(partition, range(200))) for name in "ab"
    )
    for version in (9, 9):
        expected = encode_response(METADATA, version, 7, MetadataResponse(topics=mapped))
        assert encode_response(METADATA, version, 7, MetadataResponse(topics=topics)) == expected
    assert made == list(range(200))


def test_a_written_array_counts_until_it_is_written() -> None:
    response = MetadataResponse(
        topics=(MetadataResponseTopic(name="t", partitions=Written(partition, range(200))),)
    )
    with pytest.raises(TooManyElements):
        encode_response(METADATA, VERSION, 7, response, 100)
    encode_response(METADATA, VERSION, 7, response, 1000)
    encode_response(METADATA, VERSION, 7, response, 100)


def test_a_fault_in_a_written_array_names_its_field() -> None:
    wrong = Written(lambda _: MetadataResponsePartition(leader_id=1 << 40), range(1))
    response = MetadataResponse(topics=(MetadataResponseTopic(name="t", partitions=wrong),))
    with pytest.raises(ValueError, match="leader_id"):
        encode_response(METADATA, VERSION, 7, response)
