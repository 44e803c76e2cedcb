"""Apache Kafka's markers in a partition that was added to a transaction: docs/decisions/027.

The offsets that a transaction commits are records of a shard's leader, and fenced like all others. The end of
the transaction, and that alone, is written by the upstream. kshim relies on these answers.
"""

from __future__ import annotations

import re
import time

import pytest

from integration.support.awaiting import wait_until
from integration.support.server import Server
from integration.upstream.partition import Partition
from integration.upstream.transactor import EPOCH_BUMPED, EPOCH_KEPT, transactor
from schemas.error_code import ErrorCode

UNGIVEN = 1 << 62
UPSTREAM_OPTIONS = (
    "--set=transaction.abort.timed.out.transaction.cleanup.interval.ms=100",
    "--set=log.cleaner.backoff.ms=100",
)


def new_partition(request: pytest.FixtureRequest, kafka: Server, **configs: object) -> Partition:
    topic = re.sub(r"\W+", "-", request.node.name)
    partition = Partition(topic, lambda: [(kafka.host, kafka.port)])
    partition.create(**{"cleanup_policy": "compact", **configs})
    return partition


@pytest.fixture
def partition(request: pytest.FixtureRequest, kafka: Server) -> Partition:
    return new_partition(request, kafka)


@pytest.mark.parametrize("version", [EPOCH_KEPT, EPOCH_BUMPED])
@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_comes_where_the_transaction_has_written_nothing(
    partition: Partition, version: int, committed: bool
) -> None:
    """With the epoch of the next transaction, if each has its own."""
    paul = transactor(partition, partition.topic)
    before = paul.producer_epoch
    assert paul.add(partition.topic) is ErrorCode.NONE
    assert paul.end(committed, version).error_code == ErrorCode.NONE
    (marker,) = wait_until(partition.markers, 10, "a marker")
    bumped = version == EPOCH_BUMPED
    assert marker[:3] == (paul.producer_id, before + bumped, committed)


@pytest.mark.parametrize("version", [EPOCH_KEPT, EPOCH_BUMPED])
def test_markers_are_in_the_log_before_a_partition_is_added_to_the_next_transaction(
    partition: Partition, version: int
) -> None:
    paul = transactor(partition, partition.topic)
    for number in range(1, 30):
        assert paul.add(partition.topic) is ErrorCode.NONE
        assert len(partition.markers()) == number - 1
        assert paul.end(version=version).error_code == ErrorCode.NONE


def test_a_transaction_that_takes_too_long_is_aborted_with_a_later_epoch(partition: Partition) -> None:
    paul = transactor(partition, partition.topic, timeout_ms=500)
    assert paul.add(partition.topic) is ErrorCode.NONE
    (marker,) = wait_until(partition.markers, 30, "a marker")
    assert marker[:3] == (paul.producer_id, paul.producer_epoch + 1, False)
    assert paul.add_once(partition.topic) is ErrorCode.PRODUCER_FENCED


def test_the_next_producer_of_the_id_aborts_the_transaction(partition: Partition) -> None:
    paul = transactor(partition, partition.topic)
    assert paul.add(partition.topic) is ErrorCode.NONE
    paula = transactor(partition, partition.topic)
    assert paula.producer_id == paul.producer_id
    (marker,) = partition.markers()
    assert paul.producer_epoch < marker.producer_epoch <= paula.producer_epoch
    assert not marker.committed
    assert paul.add_once(partition.topic) is ErrorCode.PRODUCER_FENCED


def test_markers_neither_hinder_nor_fence_plain_batches_of_others(partition: Partition) -> None:
    paul = transactor(partition, partition.topic)
    assert partition.append(UNGIVEN, 0, 0).error is ErrorCode.NONE
    assert paul.add(partition.topic) is ErrorCode.NONE
    assert partition.append(UNGIVEN, 0, 1).offset == 1
    paul.end()
    wait_until(partition.markers, 10, "a marker")
    assert partition.append(UNGIVEN, 0, 2).offset == 3
    assert partition.append(UNGIVEN, 1, 0).offset == 4
    assert partition.append(UNGIVEN, 0, 3).error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_clients_get_the_partitions_of_a_transaction_from_the_coordinator(partition: Partition) -> None:
    """Verification is for brokers: a client may only add partitions, which begins a transaction."""
    paul = transactor(partition, partition.topic)
    assert paul.described().transaction_state == "Empty"
    paul.add(partition.topic)
    state = paul.described()
    assert (state.transaction_state, state.producer_id, state.producer_epoch) == (
        "Ongoing",
        paul.producer_id,
        paul.producer_epoch,
    )
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [(partition.topic, (0,))]
    paul.end()
    state = wait_until(
        lambda: (it := paul.described()).transaction_state == "CompleteCommit" and it, 10, "the end"
    )
    assert state.topics == ()


def test_markers_go_a_while_after_compaction(request: pytest.FixtureRequest, kafka: Server) -> None:
    """delete.retention.ms after the log was compacted, as nothing of the transaction is there for Kafka."""
    partition = new_partition(
        request,
        kafka,
        segment_ms=100,
        min_cleanable_dirty_ratio=0.01,
        max_compaction_lag_ms=100,
        delete_retention_ms=4_000,
    )
    paul = transactor(partition, partition.topic)
    paul.add(partition.topic)
    paul.end()
    wait_until(partition.markers, 10, "a marker")
    begun, sequence = time.monotonic(), 0

    def is_gone() -> bool:
        nonlocal sequence
        assert partition.append(UNGIVEN, 0, sequence).error is ErrorCode.NONE  # begins a new segment
        sequence += 1
        return not partition.markers()

    wait_until(is_gone, 60, "the marker goes")
    assert time.monotonic() - begun > 4.0
