"""Producers and transactions in every backend's log, also after restarts and failures."""

import errno
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from kshim.storage import producers as rules
from kshim.storage.embedded import EmbeddedStore
from kshim.storage.embedded.ahead import Ahead
from kshim.storage.interfaces import Aborted, Log, Offsets, StorageError, Store
from kshim.storage.producers import NO_TRANSACTION, ProducerState, SentBatch
from schemas.records.batch import Record, batches, decode_header, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.storage.embedded import await_recovery, when_deleted
from tests.storage.reactor import Reactor

OpenStore = Callable[..., EmbeddedStore]
P, Q = 7, 8  # producer ids


def data(producer_id: int, sequence: int = 0, *, count: int = 1, epoch: int = 0, **options: Any) -> bytes:
    options.setdefault("is_transactional", True)
    return encode(
        [Record(delta, 100 + delta, b"k", b"v") for delta in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        **options,
    )


def end(producer_id: int, *, committed: bool, epoch: int = 0, coordinator_epoch: int = 0) -> bytes:
    return encode_marker(EndTxnMarker(producer_id, epoch, committed, coordinator_epoch, timestamp_ms=200))


COMMIT_P, ABORT_P = end(P, committed=True), end(P, committed=False)
COMMIT_Q, ABORT_Q = end(Q, committed=True), end(Q, committed=False)
PLAIN = encode([Record(0, 1, None, b"plain")])


class TestTransactions:
    @pytest.fixture(autouse=True)
    def _log(self, store: Store, reactor: Reactor) -> None:
        self.log = store.log
        self.reactor = reactor

    def append(self, *appended: bytes, partition_no: int = 1) -> None:
        for batch in appended:
            self.reactor.result(self.log.append(partition_no, batch, now_ms=0))

    def last_stable_offset(self) -> int:
        return self.log.offsets(1).last_stable_offset

    def aborted(self, start: int, end: int) -> list[tuple[int, int]]:
        return [found[:2] for found in self.log.aborted_transactions(1, start, end)]

    def test_last_stable_offset_is_the_high_watermark_without_transactions(self) -> None:
        assert self.last_stable_offset() == 0
        self.append(PLAIN, data(P, is_transactional=False))
        assert self.log.offsets(1) == Offsets(0, 2, 2, 2)

    def test_last_stable_offset_waits_for_the_first_open_transaction(self) -> None:
        self.append(PLAIN, data(P), PLAIN, data(Q), data(P, 1))
        assert self.last_stable_offset() == 1
        self.append(COMMIT_P)
        assert self.last_stable_offset() == 3
        self.append(data(P, 2))
        assert self.last_stable_offset() == 3
        self.append(ABORT_Q)
        assert self.last_stable_offset() == 6
        self.append(COMMIT_P)
        assert self.last_stable_offset() == 9

    def test_watchers_are_called_when_it_has_moved(self) -> None:
        self.append(data(P))
        seen: list[int] = []
        self.log.watch(1, lambda: seen.append(self.last_stable_offset()))
        self.append(COMMIT_P)
        assert seen == [2]

    def test_read_up_to_an_offset(self) -> None:
        self.append(PLAIN, data(P, count=3), PLAIN + data(Q, count=2) + PLAIN)
        read = {up_to: self.log.read(1, 0, 10_000, up_to=up_to) for up_to in range(10)}
        bases = {
            up_to: [decode_header(batch).base_offset for batch in batches(read[up_to])] for up_to in read
        }
        assert bases == {
            0: [],
            **{up_to: [0] for up_to in (1, 2, 3)},
            4: [0, 1],
            **{up_to: [0, 1, 4] for up_to in (5, 6)},
            7: [0, 1, 4, 5],
            **{up_to: [0, 1, 4, 5, 7] for up_to in (8, 9)},
        }
        assert self.log.read(1, 5, 10_000, up_to=5) == b""
        assert self.log.read(1, 4, 10_000, up_to=5) == self.log.read(1, 4, 1)

    def test_aborted_transactions_of_a_range(self) -> None:
        self.append(data(P), data(Q), ABORT_Q, data(P, 1), ABORT_P)  # P: 0-4, Q: 1-2
        self.append(data(Q, 1), COMMIT_Q, data(Q, 2), ABORT_Q, PLAIN)  # Q: 7-8
        assert self.log.aborted_transactions(1, 0, 10) == (
            Aborted(Q, 1, 2, 0),
            Aborted(P, 0, 4, 5),
            Aborted(Q, 7, 8, 9),
        )
        assert self.aborted(0, 1) == [(P, 0)]
        assert self.aborted(0, 2) == [(Q, 1), (P, 0)]
        assert self.aborted(2, 7) == [(Q, 1), (P, 0)]
        assert self.aborted(3, 8) == [(P, 0), (Q, 7)]
        assert self.aborted(5, 7) == []
        assert self.aborted(9, 10) == []
        assert self.log.aborted_transactions(2, 0, 10) == ()

    def test_a_marker_without_a_transaction_aborts_nothing(self) -> None:
        self.append(ABORT_P, data(Q, is_transactional=False), ABORT_Q)
        assert self.log.aborted_transactions(1, 0, 3) == ()
        assert self.last_stable_offset() == 3

    def test_what_is_known_of_a_producer(self) -> None:
        self.append(PLAIN)
        assert dict(self.log.producers(1).items()) == {}
        for sequence in range(0, 14, 2):
            self.append(data(P, sequence, count=2))
        sent = tuple(SentBatch(sequence, sequence + 1, 1 + sequence, 101) for sequence in range(4, 14, 2))
        assert self.log.producers(1).get(P) == ProducerState(0, -1, 101, 1, sent)
        self.append(end(P, committed=True, coordinator_epoch=3))
        assert self.log.producers(1).get(P) == ProducerState(0, 3, 200, NO_TRANSACTION, sent)
        assert self.log.producers(1).get(Q) is None

    def test_a_new_epoch_forgets_the_batches_of_the_old_one(self) -> None:
        self.append(data(P), end(P, committed=False, epoch=1))
        assert self.log.producers(1).get(P) == ProducerState(1, 0, 200, NO_TRANSACTION, ())
        self.append(data(P, epoch=1), data(P, epoch=2))
        assert self.log.producers(1).get(P) == ProducerState(2, 0, 100, 2, (SentBatch(0, 0, 3, 100),))

    def test_log_append_time_is_the_time_of_its_batches(self) -> None:
        append = self.log.append(1, data(P), now_ms=777, log_append_time=True)
        self.reactor.result(append)
        assert self.log.producers(1).get(P) == ProducerState(0, -1, 777, 0, (SentBatch(0, 0, 0, 777),))

    def test_an_emptied_control_batch_changes_nothing(self) -> None:
        self.append(data(P))
        before = self.log.producers(1).get(P)
        self.append(encode([], producer_id=P, producer_epoch=0, is_control=True, is_transactional=True))
        assert self.log.producers(1).get(P) == before
        assert self.last_stable_offset() == 0

    def test_silent_producers_are_forgotten_unless_a_transaction_is_open(self) -> None:
        self.append(data(P), data(Q), COMMIT_Q, data(9, is_transactional=False, count=2))
        self.log.forget_producers(100)
        assert set(dict(self.log.producers(1).items())) == {P, Q, 9}
        self.log.forget_producers(101)
        assert set(dict(self.log.producers(1).items())) == {P, Q}
        self.log.forget_producers(1000)
        assert set(dict(self.log.producers(1).items())) == {P}

    def test_too_many_producers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rules, "MAX_PRODUCERS", 3)
        self.append(data(0))
        for producer_id in (1, 2, 1, 3, 4):
            self.append(data(producer_id, is_transactional=False))
        assert set(dict(self.log.producers(1).items())) == {0, 3, 4}

    def test_a_deleted_partition_has_no_producers(self) -> None:
        self.append(data(P), ABORT_P, data(P, 1))
        self.log.delete(1)
        assert dict(self.log.producers(1).items()) == {}
        assert self.log.offsets(1) == Offsets(0, 0, 0, 0)
        assert self.log.aborted_transactions(1, 0, 10) == ()


def state(log: Log, partition_no: int = 1) -> tuple[object, ...]:
    """All that is known of a partition, in a fixed order."""
    offsets = log.offsets(partition_no)
    producers = sorted(log.producers(partition_no).items())
    return offsets, producers, log.aborted_transactions(partition_no, 0, offsets.high_watermark)


class TestRestart:
    """The embedded store restores what was known."""

    def test_a_restart_knows_all(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        appended = [
            *(data(P, sequence) for sequence in range(7)),
            data(Q),
            data(9, count=3, is_transactional=False),
            ABORT_P,
            data(P, 7),
            end(P, committed=False, epoch=1),
            data(P, epoch=1),
        ]
        reactor.wait(*(store.log.append(1, batch, now_ms=0) for batch in appended))
        reactor.wait(store.log.append(2, data(9), now_ms=0))
        known = state(store.log), state(store.log, 2)
        assert store.log.offsets(1) == Offsets(0, 15, 15, 7)
        reactor.result(store.close())
        store = open_embedded()
        assert (state(store.log), state(store.log, 2)) == known
        reactor.wait(store.log.append(1, end(Q, committed=False), now_ms=0))
        assert store.log.offsets(1).last_stable_offset == 14
        assert store.log.aborted_transactions(1, 13, 16) == (Aborted(P, 12, 13, 7), Aborted(Q, 7, 15, 14))
        assert store.log.aborted_transactions(1, 16, 16) == ()

    def test_what_was_not_stored_is_not_known(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        reactor.result(store.log.append(1, data(P), now_ms=0))
        before = state(store.log)
        with patch.object(Ahead, "append", side_effect=OSError(errno.EIO, "disk on fire")):
            appends = [store.log.append(1, batch, now_ms=0) for batch in (data(P, 1), ABORT_P, data(Q))]
            assert {type(result) for result in reactor.wait(*appends)} == {StorageError}
        assert state(store.log) == before
        await_recovery(store, reactor)
        reactor.result(store.log.append(1, ABORT_P, now_ms=0))
        assert store.log.offsets(1) == Offsets(0, 2, 2, 2)

    def test_last_stable_offset_waits_for_the_marker_to_be_durable(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded(sync=True)
        reactor.wait(*(store.log.append(1, batch, now_ms=0) for batch in (PLAIN, data(P), PLAIN)))
        appended = store.log.append(1, COMMIT_P, now_ms=0)
        assert store.log.offsets(1) == Offsets(0, 3, 4, 1)
        reactor.result(appended)
        assert store.log.offsets(1) == Offsets(0, 4, 4, 4)

    def test_forgotten_producers_stay_forgotten(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        known = (data(P, is_transactional=False), data(Q, is_transactional=False, count=2), data(9))
        for partition_no in (1, 2):
            reactor.wait(*(store.log.append(partition_no, batch, now_ms=0) for batch in known))
        reactor.result(store.close())
        store = open_embedded()
        store.log.offsets(1)
        store.log.forget_producers(100)  # partition 2 is not loaded yet
        assert [set(dict(store.log.producers(no).items())) for no in (1, 2)] == [{Q, 9}] * 2
        reactor.result(store.close())
        store = open_embedded()
        assert [set(dict(store.log.producers(no).items())) for no in (1, 2)] == [{Q, 9}] * 2

    def test_what_cannot_be_forgotten_is_forgotten_later(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        reactor.result(store.log.append(1, data(P, is_transactional=False), now_ms=0))
        with patch.object(Ahead, "append", side_effect=OSError(errno.EIO, "disk on fire")):
            store.log.forget_producers(100)
            (failed,) = reactor.wait(store.log.append(2, PLAIN, now_ms=0))
            assert isinstance(failed, StorageError)
        await_recovery(store, reactor)
        assert dict(store.log.producers(1).items()) == {}
        reactor.result(store.close())
        assert dict(open_embedded().log.producers(1).items()) == {}

    def test_a_producer_that_comes_back_is_known_again(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        reactor.result(store.log.append(1, data(P, is_transactional=False), now_ms=0))
        store.log.forget_producers(1000)
        reactor.result(store.log.append(1, data(P, 5, is_transactional=False), now_ms=0))
        known = state(store.log)
        reactor.result(store.close())
        assert state(open_embedded().log) == known

    def test_nothing_is_left_of_a_deleted_partition(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        for partition_no in (1, 2):
            appended = [data(P), ABORT_P, *(data(id_) for id_ in range(20, 50))]
            reactor.wait(*(store.log.append(partition_no, batch, now_ms=0) for batch in appended))
        kept = state(store.log, 2)
        monkeypatch.setattr("kshim.storage.embedded.producers.STEP_ROWS", 7)
        deleted = when_deleted(store, monkeypatch)
        store.log.delete(1)
        assert deleted() == 8  # chunks, 31 producers, one aborted transaction, the end
        for database in ("producers", "aborted"):
            with store._environment.read(database) as transaction:
                assert {bytes(key[:4]) for key, _ in transaction.cursor()} == {bytes([0, 0, 0, 2])}
        assert state(store.log, 2) == kept
