"""A mapped array is its tuple: equal, and the same bytes."""

import tracemalloc

from schemas.mapped import Mapped
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
    struct = MESSAGES[METADATA][1].struct(VERSION)  # type: ignore[index]
    assert data == b"\0\0\0\7\0" + struct.build(response)
    assert peak_bytes < 2 * len(data) + 3_000_000
