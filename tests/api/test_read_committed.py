"""Fetch and ListOffsets with read_committed (KIP-98). The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest

from kshim.answering import Broker
from kshim.api.fetch import fetch
from kshim.api.list_offsets import list_offsets
from schemas.messages.fetch import PartitionData
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.records.batch import Record, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.api.fetches import offsets, read_one, request, wanted
from tests.api.harness import NOW_MS, advance, ask, batch, collect, context, create, new_broker, result

COMMITTED = 1


class Log:
    """Partition 0 of topic t, written by producers 1, 2, …; each batch has one record, a minute after the
    last."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.partition_no = create(broker, "t").partitions[0].partition_no
        self.sequences: dict[int, int] = {}
        self.count = 0

    def plain(self) -> None:
        self._append(batch(b"v", at_ms=self._at_ms()))

    def send(self, producer_id: int) -> None:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + 1
        record = Record(0, self._at_ms(), None, b"v")
        ids = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        self._append(encode([record], is_transactional=True, **ids))

    def end(self, producer_id: int, *, committed: bool) -> None:
        self._append(encode_marker(EndTxnMarker(producer_id, 0, committed, 0, self._at_ms())))

    def _at_ms(self) -> int:
        self.count += 1
        return NOW_MS + 60_000 * self.count

    def _append(self, data: bytes) -> None:
        result(self.broker.log.append(self.partition_no, data, now_ms=NOW_MS))


@pytest.fixture
def broker() -> Broker:
    return new_broker()


@pytest.fixture
def log(broker: Broker) -> Log:
    return Log(broker)


def aborted(data: PartitionData) -> list[tuple[int, int]] | None:
    transactions = data.aborted_transactions
    if transactions is None:
        return None
    return [(transaction.producer_id, transaction.first_offset) for transaction in transactions]


def test_records_end_at_the_last_stable_offset(broker: Broker, log: Log) -> None:
    log.plain()
    log.send(1)
    log.plain()
    data = read_one(broker, 0, isolation_level=COMMITTED)
    assert (offsets(data), data.high_watermark, data.last_stable_offset) == ([0], 3, 1)
    uncommitted = read_one(broker, 0)
    assert (offsets(uncommitted), uncommitted.last_stable_offset) == ([0, 1, 2], 1)
    log.end(1, committed=True)
    assert offsets(read_one(broker, 0, isolation_level=COMMITTED)) == [0, 1, 2, 3]


def test_between_the_last_stable_offset_and_the_end_there_is_nothing_and_no_error(
    broker: Broker, log: Log
) -> None:
    log.send(1)
    log.plain()
    for offset in (0, 1, 2):
        data = read_one(broker, offset, isolation_level=COMMITTED)
        assert (data.error_code, data.records, aborted(data)) == (0, b"", [])


def test_the_aborted_transactions_of_what_is_read(broker: Broker, log: Log) -> None:
    log.send(1)  # 0
    log.send(2)
    log.end(1, committed=False)  # 2
    log.end(2, committed=True)
    log.send(3)  # 4
    log.end(3, committed=False)
    assert aborted(read_one(broker, 0, isolation_level=COMMITTED)) == [(1, 0), (3, 4)]
    assert aborted(read_one(broker, 3, isolation_level=COMMITTED)) == [(3, 4)]
    assert aborted(read_one(broker, 6, isolation_level=COMMITTED)) == []
    assert aborted(read_one(broker, 0)) is None
    one = read_one(broker, 0, isolation_level=COMMITTED, partition={"max_bytes": 1})
    assert (offsets(one), aborted(one)) == ([0], [(1, 0)])


def test_a_marker_wakes_a_waiting_fetch(broker: Broker, log: Log) -> None:
    log.send(1)
    for min_bytes in (1, 100):
        asked = request(wanted(0, 0), isolation_level=COMMITTED, max_wait_ms=500, min_bytes=min_bytes)
        seen = collect(fetch(broker, context(12), asked))
        log.plain()
        assert seen == []
        log.end(1, committed=True)
        (response,) = seen
        assert offsets(response.responses[0].partitions[0])
        assert broker.clock.getDelayedCalls() == []
        log = Log(new_broker())
        broker = log.broker
        log.send(1)


def test_a_fetch_waits_to_the_end_while_a_transaction_stays_open(broker: Broker, log: Log) -> None:
    log.send(1)
    asked = request(wanted(0, 0), isolation_level=COMMITTED, max_wait_ms=500)
    seen = collect(fetch(broker, context(12), asked))
    log.plain()
    advance(broker, 499)
    assert seen == []
    advance(broker, 1)
    assert seen[0].responses[0].partitions[0].high_watermark == 2


def found(broker: Broker, timestamp: int, isolation_level: int, replica_id: int = -1) -> tuple[int, int]:
    """(timestamp in minutes, offset)."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="t", partitions=(partition,)),)
    asked = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)
    (answer,) = ask(list_offsets, broker, asked, 7).topics[0].partitions
    return (answer.timestamp - NOW_MS) // 60_000 if answer.timestamp > 0 else -1, answer.offset


def test_list_offsets_ends_at_the_last_stable_offset(broker: Broker, log: Log) -> None:
    log.plain()
    log.send(1)
    log.plain()
    first, second = (NOW_MS + 60_000 * count for count in (1, 2))
    assert [found(broker, -1, level) for level in (0, COMMITTED)] == [(-1, 3), (-1, 1)]
    assert [found(broker, -2, level) for level in (0, COMMITTED)] == [(-1, 0), (-1, 0)]
    assert [found(broker, -3, level) for level in (0, COMMITTED)] == [(3, 2), (-1, -1)]
    assert [found(broker, first, level) for level in (0, COMMITTED)] == [(1, 0), (1, 0)]
    assert [found(broker, second, level) for level in (0, COMMITTED)] == [(2, 1), (-1, -1)]
    assert found(broker, -1, COMMITTED, replica_id=-2) == (-1, 3)
    log.end(1, committed=False)
    assert [found(broker, -1, level) for level in (0, COMMITTED)] == [(-1, 4), (-1, 4)]
