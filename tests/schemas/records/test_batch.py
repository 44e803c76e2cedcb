"""Record batches: compared with kafka-clients' bytes and kafka-python's codec, and with what Kafka
refuses."""

import struct
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.error_code import ErrorCode
from schemas.records.batch import (
    HEADER_BYTES,
    BatchExpandsTooFar,
    Compression,
    CorruptRecordBatch,
    Record,
    TimestampType,
    batches,
    crc32c,
    decode_header,
    encode,
    encode_entries,
    patch,
    patch_in_place,
    records,
    set_max_timestamp,
    sole_batch,
    validate,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # from how kafka-python reads definitions
    import kafka.codec
    from kafka.record import MemoryRecords, MemoryRecordsBuilder

JAVA = {
    line.split()[0]: bytes.fromhex(line.split()[1])
    for line in (Path(__file__).parent / "record_batches.txt").read_text().splitlines()
    if not line.startswith("#")
}
JAVA_RECORDS = [
    Record(0, 1700000000000, b"key", b"value", (("h", b"x"), ("ü", None), ("", b""))),
    Record(1, 1700000000500, None, b""),
    Record(2, 1699999999000, b"", None),
    Record(3, 1700000000001, None, b"a" * 300),
]
PRODUCER: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3, "base_sequence": 17}


def at(base_offset: int, some: Sequence[Record]) -> list[Record]:
    return [record._replace(offset=record.offset + base_offset) for record in some]


class TestAgainstJava:
    @pytest.mark.parametrize("codec", list(Compression))
    def test_reads_every_codec(self, codec: Compression) -> None:
        batch = JAVA[codec.name.lower()]
        assert decode_header(batch).compression is codec
        assert list(records(batch)) == at(100, JAVA_RECORDS)

    def test_writes_the_same_bytes(self) -> None:
        assert encode(at(100, JAVA_RECORDS), base_offset=100) == JAVA["none"]
        assert encode(JAVA_RECORDS, **PRODUCER) == JAVA["idempotent"]
        assert encode(JAVA_RECORDS, **PRODUCER, is_transactional=True) == JAVA["transactional"]

    @pytest.mark.parametrize("count", [1, 3, 70, 9000])
    def test_entries_are_records_of_one_time(self, count: int) -> None:
        """Lengths and offset deltas of one, two and three bytes."""
        entries = [(b"k" * (n % 70), (None, b"", b"v" * n)[n % 3]) for n in range(count)]
        same = [Record(delta, 1700000000000, key, value) for delta, (key, value) in enumerate(entries)]
        found = encode_entries(entries, 1700000000000)
        assert found.data == encode(same)
        assert found.header == decode_header(found.data)
        of_producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3, "is_transactional": True}
        found = encode_entries([(None, b"v")], 5, **of_producer)
        assert found.data == encode([Record(0, 5, None, b"v")], **of_producer)
        assert found.header == decode_header(found.data)

    def test_sets_log_append_time_as_java_does(self) -> None:
        java = JAVA["log_append_time"]
        batch = bytearray(encode(JAVA_RECORDS))
        now_ms = decode_header(java).max_timestamp
        set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, now_ms)
        assert batch == java
        assert {record.timestamp_ms for record in records(java)} == {now_ms}
        set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, 1700000000500)
        assert batch == encode(JAVA_RECORDS)

    def test_header(self) -> None:
        header = decode_header(JAVA["transactional"])
        assert header.size == len(JAVA["transactional"])
        assert (header.last_offset, header.next_offset, header.records_count) == (3, 4, 4)
        assert (header.base_timestamp, header.max_timestamp) == (1700000000000, 1700000000500)
        assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (
            *(4000, 3),
            *(17, 20),
        )
        assert (header.is_transactional, header.is_control) == (True, False)
        assert header.timestamp_type is TimestampType.CREATE_TIME
        assert decode_header(JAVA["log_append_time"]).timestamp_type is TimestampType.LOG_APPEND_TIME


some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.lists(st.tuples(st.text(max_size=20), some_bytes), max_size=4)
some_records = st.lists(
    st.tuples(st.integers(0, 2**45), some_bytes, some_bytes, some_headers),
    min_size=1,
    max_size=20,
).map(lambda rows: [Record(i, *row[:3], tuple(row[3])) for i, row in enumerate(rows)])
kafka_codecs = st.sampled_from(
    [
        codec
        for codec in Compression
        if codec is Compression.NONE or getattr(kafka.codec, f"has_{codec.name.lower()}")()
    ]
)


class TestAgainstKafkaPython:
    @given(some_records, kafka_codecs, st.integers(0, 2**62))
    def test_it_reads_what_is_written_here(
        self, some: list[Record], codec: Compression, base_offset: int
    ) -> None:
        encoded = encode(at(base_offset, some), base_offset=base_offset, compression=codec)
        batch = MemoryRecords(encoded).next_batch()
        assert batch.validate_crc()
        found = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
        assert found == at(base_offset, some)

    @given(some_records, kafka_codecs)
    def test_what_it_writes_is_read_here(self, some: list[Record], codec: Compression) -> None:
        builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20)
        for record in some:
            builder.append(record.timestamp_ms, record.key, record.value, list(record.headers))
        builder.close()
        batch = bytes(builder.buffer())
        assert validate(batch).records_count == len(some)
        assert list(records(batch)) == some


class TestEncode:
    @given(some_records, st.sampled_from(Compression), st.integers(0, 2**62))
    def test_records_come_back(self, some: list[Record], codec: Compression, base_offset: int) -> None:
        batch = encode(at(base_offset, some), base_offset=base_offset, compression=codec)
        assert list(records(batch)) == at(base_offset, some)
        validate(patch(batch, 0, 0))

    @pytest.mark.parametrize("codec", list(Compression))
    def test_more_than_one_block(self, codec: Compression) -> None:
        some = [Record(0, 1, None, bytes(range(256)) * 1000)]
        assert list(records(encode(some, compression=codec))) == some

    def test_offsets_may_have_gaps_and_a_batch_may_be_empty(self) -> None:
        batch = encode(
            [Record(12, 5, b"a", None), Record(15, 3, b"b", None)], base_offset=10, last_offset_delta=9
        )
        assert [record.offset for record in records(batch)] == [12, 15]
        assert decode_header(batch).last_offset == 19
        empty = encode([], base_offset=10, last_offset_delta=9)
        assert list(records(empty)) == []
        assert decode_header(empty).next_offset == 20

    def test_snappy_in_one_raw_block_is_read(self) -> None:
        plain = encode(JAVA_RECORDS)
        raw = plain[:HEADER_BYTES] + bytes(cramjam.snappy.compress_raw(plain[HEADER_BYTES:]))
        assert list(records(with_fields(raw, attributes=2, batch_length=len(raw) - 12))) == JAVA_RECORDS


class TestPatch:
    @given(some_records, st.integers(0, 2**63 - 1), st.integers(-1, 2**31 - 1))
    def test_changes_only_offset_and_epoch(self, some: list[Record], base_offset: int, epoch: int) -> None:
        batch = encode(some)
        patched = patch(memoryview(batch), base_offset, epoch)
        wanted = decode_header(batch)._replace(base_offset=base_offset, partition_leader_epoch=epoch)
        assert decode_header(patched) == wanted
        assert patched[16:] == batch[16:]
        buffer = bytearray(b"before" + batch)
        patch_in_place(buffer, 6, base_offset, epoch)
        assert buffer == b"before" + patched


class TestBatches:
    def test_one_after_the_other_without_the_incomplete_last(self) -> None:
        first, second = JAVA["none"], JAVA["gzip"]
        assert list(batches(first + second)) == [first, second]
        assert list(batches(first + second[:-1])) == [first]
        assert list(batches(first + second[:11])) == [first]
        assert list(batches(b"")) == []

    @given(st.binary(max_size=200))
    def test_any_bytes(self, data: bytes) -> None:
        with suppress(CorruptRecordBatch):
            assert sum(map(len, batches(data))) <= len(data)


def with_fields(batch: bytes, *, tail: bytes | None = None, valid_crc: bool = True, **fields: int) -> bytes:
    header = decode_header(batch)._replace(**fields)
    changed = bytearray(
        struct.pack(">qiibIhiqqqhii", *header) + (batch[HEADER_BYTES:] if tail is None else tail)
    )
    if valid_crc:
        struct.pack_into(">I", changed, 17, crc32c(changed[21 : header.size]))
    return bytes(changed)


GOOD = encode([Record(delta, 1000 + delta, b"k", b"v%d" % delta) for delta in range(3)])
LARGE = encode([Record(0, 1000, b"k", bytes(1_100_000))])


def good(**fields: Any) -> bytes:
    return with_fields(GOOD, **fields)


# Apache Kafka 4.2.0's answers to a Produce v9 with these bytes, on a topic with default configs.
ANSWERS: list[tuple[str, bytes, ErrorCode]] = [
    ("empty", b"", ErrorCode.INVALID_RECORD),
    ("truncated", GOOD[:-1], ErrorCode.INVALID_RECORD),
    ("12 bytes", GOOD[:12], ErrorCode.INVALID_RECORD),
    ("16 bytes", GOOD[:16], ErrorCode.INVALID_RECORD),
    ("17 bytes, length 5", good(batch_length=5)[:17], ErrorCode.CORRUPT_MESSAGE),
    ("length 13", good(batch_length=13), ErrorCode.CORRUPT_MESSAGE),
    ("length 14", good(batch_length=14), ErrorCode.CORRUPT_MESSAGE),
    ("length 48", good(batch_length=48), ErrorCode.CORRUPT_MESSAGE),
    ("length 49", good(batch_length=49), ErrorCode.CORRUPT_MESSAGE),
    ("length 0", good(batch_length=0), ErrorCode.CORRUPT_MESSAGE),
    ("length -1", good(batch_length=-1), ErrorCode.CORRUPT_MESSAGE),
    ("magic 0", good(magic=0), ErrorCode.INVALID_RECORD),
    ("magic 1", good(magic=1), ErrorCode.INVALID_RECORD),
    ("magic 3", good(magic=3), ErrorCode.CORRUPT_MESSAGE),
    ("magic -1", good(magic=-1), ErrorCode.CORRUPT_MESSAGE),
    ("two", GOOD + GOOD, ErrorCode.INVALID_RECORD),
    ("16 zeros behind", GOOD + bytes(16), ErrorCode.CORRUPT_MESSAGE),
    ("17 zeros behind", GOOD + bytes(17), ErrorCode.CORRUPT_MESSAGE),
    ("length 13 behind", GOOD + good(batch_length=13), ErrorCode.CORRUPT_MESSAGE),
    ("magic 3 behind", GOOD + good(magic=3), ErrorCode.CORRUPT_MESSAGE),
    ("base offset 5", good(base_offset=5), ErrorCode.INVALID_RECORD),
    ("base offset 5 and CRC", good(base_offset=5, crc=1, valid_crc=False), ErrorCode.INVALID_RECORD),
    ("CRC", good(crc=1, valid_crc=False), ErrorCode.CORRUPT_MESSAGE),
    ("CRC and count", good(crc=1, records_count=0, valid_crc=False), ErrorCode.CORRUPT_MESSAGE),
    ("last offset delta 5", good(last_offset_delta=5), ErrorCode.INVALID_RECORD),
    ("last offset delta 0", good(last_offset_delta=0), ErrorCode.INVALID_RECORD),
    ("last offset delta -1", good(last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    ("count 0", good(records_count=0), ErrorCode.INVALID_RECORD),
    ("count -1", good(records_count=-1), ErrorCode.INVALID_RECORD),
    ("count 4", good(records_count=4), ErrorCode.INVALID_RECORD),
    ("control batch", good(attributes=0x20), ErrorCode.INVALID_RECORD),
    ("compression 5", good(attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
    ("compression 7", good(attributes=7), ErrorCode.UNKNOWN_SERVER_ERROR),
    ("compression 5 and control", good(attributes=0x25), ErrorCode.UNKNOWN_SERVER_ERROR),
    ("compression 5 and count 0", good(attributes=5, records_count=0), ErrorCode.UNKNOWN_SERVER_ERROR),
    ("producer id, no sequence", good(producer_id=7, producer_epoch=0), ErrorCode.INVALID_RECORD),
    ("too large", LARGE, ErrorCode.MESSAGE_TOO_LARGE),
    ("too large and CRC", with_fields(LARGE, crc=1, valid_crc=False), ErrorCode.MESSAGE_TOO_LARGE),
    ("good", GOOD, ErrorCode.NONE),
    ("5 bytes behind", GOOD + b"xxxxx", ErrorCode.NONE),
    ("truncated behind", GOOD + GOOD[:-1], ErrorCode.NONE),
    ("LogAppendTime", good(attributes=8), ErrorCode.NONE),
    ("unknown attribute", good(attributes=0x80), ErrorCode.NONE),
    ("sequence, no producer id", good(base_sequence=5), ErrorCode.NONE),
    ("producer id -2", good(producer_id=-2), ErrorCode.NONE),
    ("producer id, no epoch", good(producer_id=7, base_sequence=0), ErrorCode.NONE),
    ("no timestamp", encode([Record(0, -1, b"k", b"v")]), ErrorCode.NONE),
    *((f"{codec.name}", encode(JAVA_RECORDS, compression=codec), ErrorCode.NONE) for codec in Compression),
]


def answer(sent: bytes, *, allow_zstd: bool = True, **options: Any) -> ErrorCode:
    try:
        batch = sole_batch(memoryview(sent), allow_zstd=allow_zstd)
        assert validate(batch, **options) == decode_header(sent)
        assert len(batch) == decode_header(sent).size
    except CorruptRecordBatch as error:
        return error.error_code
    return ErrorCode.NONE


class TestValidate:
    @pytest.mark.parametrize(("batch", "code"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
    def test_answers_as_kafka_does(self, batch: bytes, code: ErrorCode) -> None:
        assert answer(batch, max_batch_bytes=1048588) is code

    def test_zstd_needs_produce_v7(self) -> None:
        zstd = encode(JAVA_RECORDS, compression=Compression.ZSTD)
        assert answer(zstd, allow_zstd=False) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert answer(GOOD, allow_zstd=False) is ErrorCode.NONE

    def test_a_codec_that_there_is_none_of_is_met_before_produce_v7_at_once(self) -> None:
        unknown = good(attributes=5) + GOOD
        assert answer(unknown, allow_zstd=False) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert answer(unknown) is ErrorCode.INVALID_RECORD

    def test_a_batch_without_room_for_its_header(self) -> None:
        for size in range(26, 61):
            short = good(batch_length=size - 12)[:size]
            has_producer_id = size > 50
            assert answer(short) is (
                ErrorCode.CORRUPT_MESSAGE if has_producer_id else ErrorCode.UNKNOWN_SERVER_ERROR
            )

    @given(st.integers(21, len(GOOD) - 1), st.integers(1, 255))
    def test_every_byte_behind_the_crc_counts(self, position: int, change: int) -> None:
        broken = bytearray(GOOD)
        broken[position] ^= change
        assert answer(bytes(broken)) is ErrorCode.CORRUPT_MESSAGE

    @given(st.binary(max_size=100))
    def test_any_bytes(self, data: bytes) -> None:
        assert answer(data) is not ErrorCode.NONE


SNAPPY_BLOCK = bytes(cramjam.snappy.compress_raw(GOOD[HEADER_BYTES:]))


class TestBadRecords:
    """Batches with a right header and CRC, whose records are wrong."""

    @given(st.binary(max_size=100), st.sampled_from(Compression), st.integers(0, 2**31 - 1))
    def test_any_bytes(self, body: bytes, codec: Compression, count: int) -> None:
        batch = with_fields(
            GOOD, tail=body, batch_length=49 + len(body), attributes=codec, records_count=count
        )
        with suppress(CorruptRecordBatch):
            assert len(list(records(batch))) == count

    @given(st.data(), st.sampled_from(Compression))
    def test_any_change(self, data: st.DataObject, codec: Compression) -> None:
        batch = bytearray(encode(JAVA_RECORDS, compression=codec))
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
        with suppress(CorruptRecordBatch):
            list(records(batch))

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"records_count": 4}, "past the end"),
            ({"records_count": 2}, "bytes are left behind"),
            ({"records_count": -1}, "record count"),
            ({"batch_length": 10}, "length 10"),
            ({"batch_length": 2**31 - 1}, "length 2147483647"),
            ({"magic": 1}, "magic 1"),
            ({"attributes": 6}, "compression type 6"),
            ({"attributes": 1}, "gzip: "),
            ({"tail": b"\x0e\0\0\0\xff\xff\xff\xff\x0f\0", "records_count": 1}, "past the end"),
            ({"tail": b"\x0e\0\0\0\x01\x01\x03\0", "records_count": 1}, "record headers"),
            ({"tail": b"\x0e\0\0\0\x01\x01\xfe\xff\x03", "records_count": 1}, "record headers"),
            ({"tail": b"\x0e\0\0\0\x01\x01\x02\x01\0", "records_count": 1}, "header's key"),
            ({"tail": b"\x0e" + b"\xff" * 11, "records_count": 1}, "longer than 10"),
            ({"tail": b"\x10\0\0\0\x01\x01\0", "records_count": 1}, "a record ends at"),
            ({"tail": b"\x0a\0\0\0\x01\x01\0", "records_count": 1}, "a record ends at"),
            ({"tail": b"\x74\0\0\0\x01\x01\x02\0\x64", "records_count": 1}, "a record ends at"),
        ],
    )
    def test_reason(self, fields: dict[str, Any], reason: str) -> None:
        if "tail" in fields:
            fields = {**fields, "batch_length": 49 + len(fields["tail"])}
        with pytest.raises(CorruptRecordBatch, match=reason):
            list(records(with_fields(GOOD, **fields)))

    def test_shorter_than_a_header(self) -> None:
        with pytest.raises(CorruptRecordBatch, match="60 bytes are no record batch"):
            records(GOOD[:60])

    @pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
    def test_expansion_is_bounded(self, codec: Compression) -> None:
        batch = encode([Record(0, 1, None, bytes(3_000_000))], compression=codec)
        assert len(batch) < 200_000
        with pytest.raises(BatchExpandsTooFar, match=f"{codec.name.lower()}: more than 2000000 bytes"):
            records(batch, max_bytes=2_000_000)
        assert len(list(records(batch, max_bytes=4_000_000))) == 1

    @pytest.mark.parametrize(
        "body",
        [
            b"\xff\xff\xff\xff\x0fabc",
            b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 2**31 - 1) + b"abc",
            b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -1),
            b"\x82SNAPPY\0" + struct.pack(">iiih", 1, 1, 0, 0),
            b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(SNAPPY_BLOCK) + 1) + SNAPPY_BLOCK,
            b"\x82SNAPPY\0",
            b"",
        ],
    )
    def test_snappy_that_lies(self, body: bytes) -> None:
        batch = with_fields(GOOD, tail=body, batch_length=49 + len(body), attributes=Compression.SNAPPY)
        with pytest.raises(CorruptRecordBatch):
            list(records(batch))
