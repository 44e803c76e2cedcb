"""Which records are sent together, and to which partition."""

from __future__ import annotations

from random import Random

import pytest

from kshim.client.batches import ALL_BYTES, BATCH_BYTES, Batches, NoPartition, size_of
from kshim.client.partitioner import partition_for
from kshim.client.record import NewRecord
from schemas.records import batch


def new_batches(partitions: int = 6) -> Batches:
    return Batches("orders", partitions, Random(1))


def of_bytes(size: int, partition: int | None = None) -> NewRecord:
    empty = NewRecord(None, b"", partition=partition)
    return empty._replace(value=b"x" * (size - size_of(empty)))


def test_a_key_decides_the_partition_as_in_kafkas_clients() -> None:
    batches = new_batches()
    keys = [b"%d" % number for number in range(50)]
    for key in keys:
        assert batches.add(NewRecord(key, b""))
    taken = batches.take()
    assert {each.key: partition for partition, some in taken.items() for each in some} == {
        key: partition_for(key, 6) for key in keys
    }


def test_records_without_a_key_stay_together_until_their_batch_is_taken() -> None:
    batches = new_batches()
    seen = set()
    for _ in range(50):
        for value in (b"a", b"b"):
            batches.add(NewRecord(None, value))
        ((partition, records),) = batches.take().items()
        assert [each.value for each in records] == [b"a", b"b"]
        seen.add(partition)
    assert seen == set(range(6))


def test_a_batch_is_full_before_it_is_too_large() -> None:
    batches = new_batches()
    assert batches.add(of_bytes(BATCH_BYTES - 100, partition=0))
    assert not batches.add(of_bytes(101, partition=0))
    assert batches.add(of_bytes(100, partition=0))
    assert batches.add(of_bytes(101, partition=1))
    taken = batches.take()
    assert {partition: len(some) for partition, some in taken.items()} == {0: 2, 1: 1}


def test_one_record_may_be_larger_than_a_batch() -> None:
    batches = new_batches()
    assert batches.add(of_bytes(2 * ALL_BYTES))
    assert not batches.add(NewRecord(b"k", b"v"))


def test_all_batches_together_are_bounded() -> None:
    batches = new_batches(100)
    added = 0
    while batches.add(of_bytes(BATCH_BYTES // 2, partition=added)):
        added += 1
    assert added == ALL_BYTES // (BATCH_BYTES // 2)


def test_a_record_is_never_larger_than_its_estimate() -> None:
    headers = (("name", b"value"), ("", None), ("n" * 1000, b"v" * 70_000))
    record = NewRecord(b"k" * 300, b"v" * 100_000, headers)
    encoded = batch.encode([batch.Record(0, 2**62, record.key, record.value, headers)])
    assert len(encoded) - batch.HEADER_BYTES <= size_of(record)


def test_a_partition_that_the_topic_lacks() -> None:
    with pytest.raises(NoPartition, match="partition 6: orders has the partitions 0 to 5"):
        new_batches().add(NewRecord(None, b"", partition=6))
