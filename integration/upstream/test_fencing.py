"""Apache Kafka's answers to plain, idempotent batches of several epochs: docs/decisions/024.

A shard of the groups' journal is led by whoever has appended the first batch of its newest producer epoch.
That relies on these answers: from one Apache Kafka, and from three where a leader moves.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.support.server import Server
from integration.upstream.partition import Answer, Partition
from schemas.error_code import ErrorCode

LONG_AGO_MS = 1_500_000_000_000
UNGIVEN = 1 << 62
LAST_EPOCH = 32_767
LAST_SEQUENCE = 2**31 - 1
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
SILENCE_S = 3
SOON = (
    f"--set=producer.id.expiration.ms={SILENCE_S * 1000}",
    "--set=producer.id.expiration.check.interval.ms=100",
    "--set=transactional.id.expiration.ms=1000",
    "--set=transaction.remove.expired.transaction.cleanup.interval.ms=100",
)
"""Kafka forgets producers after seconds, not after a day, and transactional ids, not after a week."""


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Server]:
    """One that forgets producers soon."""
    directory = tmp_path_factory.mktemp("upstream")
    server = Server(directory / "data", SOON, command=apache_kafka.COMMAND).start()
    yield server
    server.kill()


def of(request: pytest.FixtureRequest, *servers: Server) -> Partition:
    """A new topic's only partition."""
    topic = re.sub(r"\W+", "-", request.node.name)
    return Partition(topic, lambda: [(each.host, each.port) for each in servers if each.running])


@pytest.fixture
def partition(request: pytest.FixtureRequest, kafka: Server) -> Partition:
    partition = of(request, kafka)
    partition.create(cleanup_policy="compact")
    return partition


def test_a_later_epoch_needs_nobodys_leave_and_fences_the_earlier_one(partition: Partition) -> None:
    pid, _ = partition.new_id()
    assert partition.append(pid, 0, 0).error is ErrorCode.NONE
    assert partition.append(pid, 0, 1).error is ErrorCode.NONE
    assert partition.append(pid, 1, 0).error is ErrorCode.NONE
    assert partition.append(pid, 0, 2).error is FENCED
    assert partition.append(pid, 0, 1).error is FENCED, "nor is a batch confirmed that was appended before"
    assert partition.append(pid, 1, 1).error is ErrorCode.NONE
    assert [(each.producer_epoch, each.sequence) for each in partition.read()] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_of_two_first_batches_of_an_epoch_one_is_appended_and_both_get_its_offset(
    partition: Partition,
) -> None:
    pid, _ = partition.new_id()
    partition.append(pid, 0, 0)
    first = partition.append(pid, 1, 0, "mine")
    second = partition.append(pid, 1, 0, "yours")
    assert first == second == Answer(ErrorCode.NONE, 1)
    assert [each.value for each in partition.read()] == [b"", b"mine"]


def test_a_first_batch_that_comes_late_is_refused(partition: Partition) -> None:
    """Kafka remembers the last five batches of a producer."""
    pid, _ = partition.new_id()
    for sequence in range(8):
        assert partition.append(pid, 1, sequence).error is ErrorCode.NONE
    assert partition.append(pid, 1, 0, "late").error is OUT_OF_ORDER
    assert b"late" not in [each.value for each in partition.read()]


def test_an_epoch_begins_with_sequence_0_and_leaves_none_out(partition: Partition) -> None:
    pid, _ = partition.new_id()
    assert partition.append(pid, 0, 0).error is ErrorCode.NONE
    assert partition.append(pid, 2, 3).error is OUT_OF_ORDER
    assert partition.append(pid, 2, 0).error is ErrorCode.NONE, "epochs may be left out"
    assert partition.append(pid, 2, 2).error is OUT_OF_ORDER
    assert partition.append(pid, 2, 1).error is ErrorCode.NONE


def test_epochs_end_and_sequences_begin_again(partition: Partition) -> None:
    pid, _ = partition.new_id()
    assert partition.append(pid, LAST_EPOCH, LAST_SEQUENCE - 1, count=4).error is ErrorCode.NONE
    assert partition.append(pid, LAST_EPOCH, 2).error is ErrorCode.NONE
    assert partition.append(pid, LAST_EPOCH - 1, 0).error is FENCED


def test_an_id_may_be_one_that_kafka_has_not_given(partition: Partition) -> None:
    """It only has to be one that Kafka never gives: these are counted up from 0."""
    assert partition.append(UNGIVEN, 0, 0).error is ErrorCode.NONE
    assert partition.append(UNGIVEN, 1, 0).error is ErrorCode.NONE
    assert partition.append(UNGIVEN, 0, 1).error is FENCED


def test_ids_without_a_transactional_id_are_new_each_time(partition: Partition) -> None:
    assert partition.new_id() != partition.new_id()


def test_an_epoch_of_a_transactional_id_fences_only_when_it_is_used(partition: Partition) -> None:
    """So InitProducerId alone fences nobody in the partition."""
    pid, epoch = partition.new_id("shard")
    assert partition.append(pid, epoch, 0).error is ErrorCode.NONE
    assert partition.new_id("shard") == (pid, epoch + 1)
    assert partition.append(pid, epoch, 1).error is ErrorCode.NONE
    assert partition.append(pid, epoch + 1, 0).error is ErrorCode.NONE
    assert partition.append(pid, epoch, 2).error is FENCED


def test_a_transactional_id_that_rests_gets_another_id_which_fences_nobody(
    request: pytest.FixtureRequest, forgetful: Server
) -> None:
    """A leader appends for more than a week without a transaction, and its transactional id is forgotten."""
    partition = of(request, forgetful)
    partition.create()
    pid, epoch = partition.new_id("shard")
    sequence = 0

    def other_id() -> tuple[int, int] | None:
        nonlocal sequence
        assert partition.append(pid, epoch, sequence).error is ErrorCode.NONE
        sequence += 1
        time.sleep(1.5)  # each question begins the time of rest anew
        now = partition.new_id("shard")
        return now if now[0] != pid else None

    other = wait_until(other_id, 60, "another producer id")
    assert partition.append(*other, 0).error is ErrorCode.NONE
    assert partition.append(pid, epoch, sequence).error is ErrorCode.NONE, "nobody has fenced it"


def test_a_silent_producer_is_forgotten_and_fences_nobody(
    request: pytest.FixtureRequest, forgetful: Server
) -> None:
    partition = of(request, forgetful)
    partition.create(message_timestamp_type="LogAppendTime")
    pid, _ = partition.new_id()
    partition.append(pid, 0, 0)
    partition.append(pid, 1, 0)
    assert partition.append(pid, 0, 1).error is FENCED
    wait_until(lambda: partition.append(pid, 0, 1).error is ErrorCode.NONE, 60, "Kafka forgets the producer")


def test_a_producer_that_writes_again_in_time_is_not_forgotten(
    request: pytest.FixtureRequest, forgetful: Server
) -> None:
    partition = of(request, forgetful)
    partition.create(message_timestamp_type="LogAppendTime")
    pid, _ = partition.new_id()
    partition.append(pid, 0, 0)
    until = time.monotonic() + 3 * SILENCE_S
    sequence = 0
    while time.monotonic() < until:
        assert partition.append(pid, 1, sequence).error is ErrorCode.NONE
        assert partition.append(pid, 0, 1).error is FENCED
        sequence += 1
        time.sleep(SILENCE_S / 6)


def test_silence_is_counted_from_the_time_in_the_batch_unless_kafka_sets_it(
    request: pytest.FixtureRequest, forgetful: Server
) -> None:
    """So the clock of a leader that is far behind would undo its fence, and the topic has LogAppendTime."""
    partition = of(request, forgetful)
    partition.create(message_timestamp_type="CreateTime")
    pid, _ = partition.new_id()
    partition.append(pid, 0, 0, timestamp_ms=LONG_AGO_MS)
    partition.append(pid, 1, 0, timestamp_ms=LONG_AGO_MS)
    forgotten_s = _until_accepted(partition, pid)
    assert forgotten_s < SILENCE_S / 2


def _until_accepted(partition: Partition, pid: int) -> float:
    begun = time.monotonic()
    wait_until(lambda: partition.append(pid, 0, 1).error is ErrorCode.NONE, 60, "Kafka forgets the producer")
    return time.monotonic() - begun


def test_the_fence_is_there_after_kill_and_compaction(
    request: pytest.FixtureRequest, tmp_path: Path, class_path: str
) -> None:
    often = ("--set=log.cleaner.backoff.ms=100",)
    server = Server(tmp_path / "data", often, command=apache_kafka.COMMAND).start()
    try:
        partition = of(request, server)
        partition.create(
            cleanup_policy="compact",
            segment_ms=100,
            min_cleanable_dirty_ratio=0.01,
            max_compaction_lag_ms=100,
        )
        pid, _ = partition.new_id()
        for sequence in range(5):
            partition.append(pid, 0, sequence, str(sequence))
        partition.append(pid, 1, 0, "next")
        other, _ = partition.new_id()

        def is_compacted() -> bool:
            partition.append(other, 0, is_compacted.sequence, key="other")  # begins a new segment
            is_compacted.sequence += 1
            return all(each.producer_epoch == 1 for each in partition.read() if each.producer_id == pid)

        is_compacted.sequence = 0
        wait_until(is_compacted, 60, "compaction")
        assert partition.append(pid, 0, 5).error is FENCED
        server.kill()
        partition.forget_leader()
        server.start()
        assert partition.append(pid, 0, 5).error is FENCED
        assert partition.append(pid, 1, 0, "retried").error is ErrorCode.NONE
        assert b"retried" not in [each.value for each in partition.read()]
        assert partition.append(pid, 1, 1).error is ErrorCode.NONE
    finally:
        server.kill()


def test_the_fence_is_there_when_another_node_leads(
    request: pytest.FixtureRequest, tmp_path: Path, class_path: str
) -> None:
    nodes = Nodes(tmp_path, 3).start()
    try:
        partition = of(request, *nodes.servers.values())
        partition.create(3, min_insync_replicas=2)
        pid, _ = partition.new_id()
        assert partition.append(pid, 0, 0).error is ErrorCode.NONE
        assert partition.append(pid, 1, 0, "first").error is ErrorCode.NONE
        nodes.servers[partition.leader_id()].kill()
        partition.forget_leader()
        assert partition.append(pid, 0, 1).error is FENCED
        assert partition.append(pid, 1, 0, "retried").error is ErrorCode.NONE
        assert partition.append(pid, 1, 1).error is ErrorCode.NONE
        assert [each.value for each in partition.read()] == [b"", b"first", b""]
    finally:
        nodes.kill()
