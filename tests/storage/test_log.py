"""The contract of every backend's log."""

import pytest
from twisted.internet.defer import Deferred

from kshim.storage.interfaces import Appended, Offsets, StorageError, Store, TimestampOffset
from schemas.records.batch import (
    Compression,
    TimestampType,
    batches,
    decode_header,
    records,
    set_max_timestamp,
    validate,
)
from tests.storage.batches import batch_of
from tests.storage.reactor import Reactor
from tests.storage.searches import find


def stored_offsets(data: bytes) -> list[int]:
    return [record.offset for batch in batches(data) for record in records(batch)]


class TestLog:
    @pytest.fixture(autouse=True)
    def _log(self, store: Store, reactor: Reactor) -> None:
        self.log = store.log
        self.reactor = reactor

    def append(self, partition_no: int, batch: bytes, **options: object) -> Appended:
        options.setdefault("now_ms", 0)
        result: Appended = self.reactor.result(self.log.append(partition_no, batch, **options))
        return result

    def test_partition_that_was_never_appended_to_is_empty(self) -> None:
        assert self.log.offsets(7) == Offsets(0, 0, 0, 0)
        assert self.log.read(7, 0, 1000) == b""
        assert find(self.log.offset_for_time(7, 0)) is None
        assert find(self.log.max_timestamp(7)) is None

    def test_append_assigns_consecutive_offsets(self) -> None:
        assert self.append(1, batch_of(10, 20, 30)) == Appended(0, 0, -1)
        assert self.append(1, batch_of(40)) == Appended(3, 0, -1)
        assert self.log.offsets(1) == Offsets(0, 4, 4, 4)
        assert stored_offsets(self.log.read(1, 0, 10_000)) == [0, 1, 2, 3]

    def test_stored_batch_is_the_one_appended_but_for_offset_and_epoch(self) -> None:
        batch = batch_of(10, 20, compression=Compression.ZSTD)
        self.append(1, batch_of(5))
        self.append(1, batch, leader_epoch=9)
        stored = self.log.read(1, 1, 10_000)
        assert stored[12:16] == (9).to_bytes(4)
        assert stored[:8] == (1).to_bytes(8)
        assert validate(bytes(8) + stored[8:]).crc == decode_header(batch).crc
        assert [record.offset for record in records(stored)] == [1, 2]

    def test_append_does_not_change_what_is_read_only(self) -> None:
        batch = batch_of(1)
        self.append(1, batch)
        self.append(1, memoryview(bytearray(batch)).toreadonly())
        assert batch == batch_of(1)
        assert stored_offsets(self.log.read(1, 0, 1000)) == [0, 1]

    def test_append_may_write_to_a_batch(self) -> None:
        """The batch may stand in the memory of its request, which is not needed any more."""
        frame = bytearray(b"--" + batch_of(1) + b"--")
        self.append(1, batch_of(1))
        self.append(1, memoryview(frame)[2:-2])
        assert stored_offsets(self.log.read(1, 0, 1000)) == [0, 1]

    def test_several_batches_in_one_append(self) -> None:
        self.append(1, batch_of(1))
        assert self.append(1, batch_of(1, 2) + batch_of(3)) == Appended(1, 0, -1)
        assert stored_offsets(self.log.read(1, 0, 10_000)) == [0, 1, 2, 3]

    def test_log_append_time_stamps_every_batch(self) -> None:
        appended = self.append(1, batch_of(5, 6) + batch_of(7), now_ms=1234, log_append_time=True)
        assert appended == Appended(0, 0, 1234)
        for stored in batches(self.log.read(1, 0, 10_000)):
            header = validate(bytes(8) + stored[8:])
            assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
            assert {record.timestamp_ms for record in records(stored)} == {1234}

    def test_create_time_is_the_topics_and_not_the_producers_choice(self) -> None:
        batch = bytearray(batch_of(5, 6))
        set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, 6)
        self.append(1, bytes(batch))
        assert self.log.read(1, 0, 1000)[16:] == batch_of(5, 6)[16:]

    def test_partitions_are_apart(self) -> None:
        for partition_no in (0, 1, 2**32 - 1):
            self.append(partition_no, batch_of(partition_no, partition_no))
        for partition_no in (0, 1, 2**32 - 1):
            assert self.log.offsets(partition_no) == Offsets(0, 2, 2, 2)
            assert stored_offsets(self.log.read(partition_no, 0, 10_000)) == [0, 1]
            assert find(self.log.max_timestamp(partition_no)) == TimestampOffset(partition_no, 0, 0)

    def test_read_begins_with_the_batch_that_holds_the_offset(self) -> None:
        self.reactor.wait(*(self.log.append(1, batch_of(1, 2, 3), now_ms=0) for _ in range(4)))
        assert stored_offsets(self.log.read(1, 4, 10_000))[0] == 3
        assert stored_offsets(self.log.read(1, 5, 10_000))[0] == 3
        assert stored_offsets(self.log.read(1, 6, 10_000))[0] == 6
        assert stored_offsets(self.log.read(1, 11, 10_000)) == [9, 10, 11]
        assert self.log.read(1, 12, 10_000) == b""
        assert self.log.read(1, 13, 10_000) == b""
        assert self.log.read(1, -1, 10_000) == b""

    def test_read_keeps_to_max_bytes(self) -> None:
        one = len(batch_of(1))
        self.reactor.wait(*(self.log.append(1, batch_of(1), now_ms=0) for _ in range(5)))
        assert stored_offsets(self.log.read(1, 0, 3 * one)) == [0, 1, 2]
        assert stored_offsets(self.log.read(1, 0, 3 * one - 1)) == [0, 1]
        assert stored_offsets(self.log.read(1, 2, one)) == [2]

    def test_first_batch_is_read_whatever_its_size_only_with_min_one(self) -> None:
        batch = batch_of(1, value=bytes(100_000))
        self.append(1, batch)
        assert len(self.log.read(1, 0, 1)) == len(batch)
        assert self.log.read(1, 0, 1, min_one=False) == b""
        assert self.log.read(1, 0, len(batch) - 1, min_one=False) == b""
        assert len(self.log.read(1, 0, len(batch), min_one=False)) == len(batch)

    def test_a_batch_that_does_not_fit_is_not_skipped(self) -> None:
        small, large = batch_of(1), batch_of(1, value=bytes(3000))
        self.append(1, small + large)
        self.append(1, small)
        assert stored_offsets(self.log.read(1, 0, 2 * len(small))) == [0]
        assert stored_offsets(self.log.read(1, 0, 10_000)) == [0, 1, 2]

    def test_reading_on_from_the_last_record_reaches_the_end(self) -> None:
        sizes = (10, 3_000, 70_000, 10, 10, 200_000, 1)
        self.reactor.wait(
            *(self.log.append(1, batch_of(1, 2, value=bytes(size)), now_ms=0) for size in sizes)
        )
        seen: list[int] = []
        while data := self.log.read(1, len(seen), 50_000):
            seen += stored_offsets(data)
        assert seen == list(range(2 * len(sizes)))

    def test_offset_for_time_is_the_first_record_that_late(self) -> None:
        self.append(1, batch_of(100, 300, 200))
        self.append(1, batch_of(50, 250), leader_epoch=4)
        self.append(1, batch_of(400, 500, compression=Compression.GZIP), leader_epoch=5)
        found = {
            time: find(self.log.offset_for_time(1, time)) for time in (0, 100, 101, 300, 301, 450, 500, 501)
        }
        assert found == {
            0: TimestampOffset(100, 0, 0),
            100: TimestampOffset(100, 0, 0),
            101: TimestampOffset(300, 1, 0),
            300: TimestampOffset(300, 1, 0),
            301: TimestampOffset(400, 5, 5),
            450: TimestampOffset(500, 6, 5),
            500: TimestampOffset(500, 6, 5),
            501: None,
        }

    def test_max_timestamp_is_the_first_record_that_has_it(self) -> None:
        self.append(1, batch_of(100, 300, 200))
        self.append(1, batch_of(300, 250))
        assert find(self.log.max_timestamp(1)) == TimestampOffset(300, 1, 0)
        self.append(1, batch_of(10, 301, 301), leader_epoch=2)
        assert find(self.log.max_timestamp(1)) == TimestampOffset(301, 6, 2)

    def test_log_append_time_is_found_at_the_first_record_of_its_batch(self) -> None:
        self.append(1, batch_of(1, 2, 3), now_ms=77, log_append_time=True)
        assert find(self.log.max_timestamp(1)) == TimestampOffset(77, 0, 0)
        assert find(self.log.offset_for_time(1, 77)) == TimestampOffset(77, 0, 0)

    def test_records_without_timestamp_are_not_found(self) -> None:
        self.append(1, batch_of(-1, -1))
        assert find(self.log.max_timestamp(1)) == TimestampOffset(-1, 0, 0)
        assert find(self.log.offset_for_time(1, 0)) is None

    def test_records_that_cannot_be_decoded_do_not_hide_the_others(self) -> None:
        broken = bytearray(batch_of(100, 200))
        broken[61:] = b"\xff" * (len(broken) - 61)
        self.append(1, bytes(broken))
        self.append(1, batch_of(300))
        assert find(self.log.offset_for_time(1, 50)) == TimestampOffset(200, 0, 0)
        assert find(self.log.offset_for_time(1, 250)) == TimestampOffset(300, 2, 0)

    def test_watchers_are_called_when_the_high_watermark_has_moved(self) -> None:
        seen: list[tuple[str, int]] = []
        self.log.watch(1, lambda: seen.append(("first", self.log.offsets(1).high_watermark)))
        unwatch = self.log.watch(1, lambda: seen.append(("second", self.log.offsets(1).high_watermark)))
        self.log.watch(2, lambda: seen.append(("other", 0)))
        self.append(1, batch_of(1, 2))
        assert seen == [("first", 2), ("second", 2)]
        unwatch()
        unwatch()
        self.append(1, batch_of(1))
        assert seen[2:] == [("first", 3)]

    def test_watchers_are_called_when_their_partition_is_deleted(self) -> None:
        seen: list[int] = []
        self.log.watch(1, lambda: seen.append(self.log.offsets(1).log_end_offset))
        self.log.delete(2)
        assert seen == []
        self.log.delete(1)
        assert seen == [0]

    def test_a_watcher_may_unwatch_others_and_append(self) -> None:
        seen: list[str] = []
        pending: list[Deferred[Appended]] = []

        def first() -> None:
            seen.append("first")
            unwatch_first()
            unwatch_second()
            pending.append(self.log.append(1, batch_of(1), now_ms=0))

        unwatch_first = self.log.watch(1, first)
        unwatch_second = self.log.watch(1, lambda: seen.append("second"))
        self.append(1, batch_of(1))
        self.reactor.wait(*pending)
        assert seen == ["first"]
        assert self.log.offsets(1).high_watermark == 2

    def test_deleted_partition_is_empty_and_stays_so(self) -> None:
        self.append(1, batch_of(1))
        self.append(2, batch_of(1))
        self.log.delete(1)
        assert self.log.offsets(1) == Offsets(0, 0, 0, 0)
        assert self.log.read(1, 0, 1000) == b""
        assert find(self.log.max_timestamp(1)) is None
        with pytest.raises(StorageError, match="partition 1 was deleted"):
            self.append(1, batch_of(1))
        assert self.log.offsets(2) == Offsets(0, 1, 1, 1)

    def test_deleting_what_is_not_there(self) -> None:
        self.log.delete(5)
        self.log.delete(5)
        assert self.log.offsets(5) == Offsets(0, 0, 0, 0)

    def test_delete_with_an_append_under_way(self) -> None:
        deferred = self.log.append(1, batch_of(1), now_ms=0)
        self.log.delete(1)
        assert self.reactor.result(deferred) == Appended(0, 0, -1)
        assert self.log.offsets(1) == Offsets(0, 0, 0, 0)
        assert self.log.read(1, 0, 1000) == b""
