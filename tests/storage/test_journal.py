"""The journal, over every backend's log."""

import pytest

from kshim.storage.interfaces import NO_PRODUCER, JournalBatch, StorageError, Store
from kshim.storage.journal import LOAD_BYTES, LogJournal
from schemas.records.batch import (
    Compression,
    Record,
    batches,
    decode_header,
    encode,
    records,
)
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker, encode_marker
from tests.storage.reactor import Reactor

SHARDS = (40, 41, 42)
PRODUCER = (7, 3)


def entries(journal: LogJournal, shard: int) -> list[tuple[bytes, bytes | None]]:
    """All records of a shard, without their producers."""
    loaded = [batch for batch in journal.load(shard) if isinstance(batch, JournalBatch)]
    return [entry for batch in loaded for entry in batch.records]


@pytest.fixture
def journal(store: Store) -> LogJournal:
    return LogJournal(store.log, SHARDS)


def test_loads_what_was_appended_shard_by_shard_in_order(journal: LogJournal, reactor: Reactor) -> None:
    reactor.wait(
        journal.append(0, [(b"a", b"1"), (b"b", None)], 10),
        journal.append(2, [(b"z", b"")], 11),
        journal.append(0, [(b"a", None)], 12),
    )
    assert entries(journal, 0) == [(b"a", b"1"), (b"b", None), (b"a", None)]
    assert entries(journal, 1) == []
    assert entries(journal, 2) == [(b"z", b"")]


def test_records_are_kept_as_kafka_keeps_them(journal: LogJournal, store: Store, reactor: Reactor) -> None:
    reactor.result(journal.append(1, [(b"a", b"1"), (b"b", None)], 1234))
    (batch,) = batches(store.log.read(SHARDS[1], 0, 1000))
    header = decode_header(batch)
    assert (header.magic, header.attributes, header.producer_id, header.base_sequence) == (2, 0, -1, -1)
    assert list(records(batch)) == [Record(0, 1234, b"a", b"1"), Record(1, 1234, b"b", None)]


def test_a_leader_needs_no_proof(journal: LogJournal, store: Store, reactor: Reactor) -> None:
    assert reactor.result(journal.prove_leadership(0)) is None
    assert store.log.offsets(SHARDS[0]).log_end_offset == 0


def test_loads_more_than_it_reads_at_once(journal: LogJournal, reactor: Reactor) -> None:
    value = bytes(LOAD_BYTES // 3)
    appends = [journal.append(0, [(b"%d" % number, value)], number) for number in range(10)]
    reactor.wait(*appends)
    assert [key for key, _ in entries(journal, 0)] == [b"%d" % number for number in range(10)]


def test_loads_what_other_writers_of_the_format_leave(
    journal: LogJournal, store: Store, reactor: Reactor
) -> None:
    marker = encode_marker(EndTxnMarker(7, 0, True, coordinator_epoch=3, timestamp_ms=5))
    compressed = encode([Record(0, 1, b"a", b"1"), Record(4, 2, b"b", b"2")], compression=Compression.LZ4)
    emptied = encode([], last_offset_delta=3)
    for batch in (
        compressed,
        marker,
        emptied,
        encode([Record(0, 1, None, b"no key"), Record(1, 1, b"c", b"3")]),
    ):
        reactor.result(store.log.append(SHARDS[0], batch, now_ms=0))
    assert entries(journal, 0) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


def test_says_where_it_cannot_be_read(journal: LogJournal, store: Store, reactor: Reactor) -> None:
    reactor.result(journal.append(2, [(b"a", b"1")], 1))
    broken = bytearray(encode([Record(0, 1, b"a", b"1")]))
    broken[-4:] = b"\xff\xff\xff\xff"
    reactor.result(store.log.append(SHARDS[2], bytes(broken), now_ms=0))
    with pytest.raises(StorageError, match="__consumer_offsets-2 at offset 1: "):
        list(journal.load(2))


def test_errors_of_the_log_reach_the_caller(journal: LogJournal, store: Store, reactor: Reactor) -> None:
    store.log.delete(SHARDS[0])
    with pytest.raises(StorageError):
        reactor.result(journal.append(0, [(b"a", b"1")], 1))


def test_a_transaction_is_loaded_as_it_was_written(journal: LogJournal, reactor: Reactor) -> None:
    """[163]"""
    committed, aborted = EndTxnMarker(7, 3, True, 2, 13), EndTxnMarker(8, 0, False, 2, 14)
    reactor.wait(
        journal.append(0, [(b"a", b"1")], 10, producer=PRODUCER),
        journal.append(0, [(b"a", b"2")], 11),
        journal.append(0, [(b"a", b"3"), (b"b", b"3")], 12, producer=(8, 0)),
        journal.end_transaction(0, committed),
        journal.end_transaction(0, aborted),
    )
    assert list(journal.load(0)) == [
        JournalBatch(((b"a", b"1"),), PRODUCER),
        JournalBatch(((b"a", b"2"),), NO_PRODUCER),
        JournalBatch(((b"a", b"3"), (b"b", b"3")), (8, 0)),
        committed,
        aborted,
    ]


def test_a_transaction_is_kept_as_kafka_keeps_it(journal: LogJournal, store: Store, reactor: Reactor) -> None:
    """Transactional batches without a sequence, and a control batch."""
    marker = EndTxnMarker(*PRODUCER, True, coordinator_epoch=2, timestamp_ms=13)
    reactor.wait(journal.append(1, [(b"a", b"1")], 10, producer=PRODUCER), journal.end_transaction(1, marker))
    written, end = batches(store.log.read(SHARDS[1], 0, 1000))
    header = decode_header(written)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (*PRODUCER, -1)
    assert header.is_transactional
    assert not header.is_control
    assert decode_marker(end) == marker
    assert store.log.offsets(SHARDS[1]).last_stable_offset == 2
