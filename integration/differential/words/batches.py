"""Record batches as data: what a history sends, good and bad, and a comparable form of what it reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integration.differential.words.history import Epoch, NextSequence, ProducerId, Word
from schemas.records.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_BYTES,
    KNOWN_BITS,
    Record,
    batches,
    crc32c,
    decode_header,
    encode,
    records,
)
from schemas.records.compression import Compression
from schemas.records.record import CorruptRecordBatch

AT_MS = int(time.time() - 3600) * 1000
"""Recent: a marker has its server's time, and Kafka starts a new segment after seven days."""
A_DAY_MS = 24 * 3600 * 1000

Said = tuple[int, bytes | None, bytes | None]
"""A record: its delay in ms after the batch's first timestamp, its key and its value."""


def at_ms(at: int) -> int:
    """A timestamp in ms: `at` itself if it is negative or longer than a day, else `at` ms after AT_MS."""
    return AT_MS + at if 0 <= at < A_DAY_MS else at


@dataclass(frozen=True, repr=False)
class Batch(Word):
    """A record batch in a request; it is valid unless a field below breaks it."""

    records: tuple[Said, ...] = ((0, None, b"v"),)
    codec: int = 0
    producer_id: int | ProducerId = -1
    epoch: int | Epoch = -1
    sequence: int | NextSequence = -1
    is_transactional: bool = False
    at: int = 0
    """The first timestamp, as in `at_ms`."""
    deltas: tuple[int, ...] = ()
    """The records' offset deltas, if they do not count from 0."""
    header: tuple[tuple[str, int], ...] = ()
    """Header fields that contradict the records."""
    crc: int = 0
    """Added to the right CRC."""
    cut: int = 0
    """How many bytes are missing at the end."""
    tail: bytes | Batch = b""
    """The bytes after the batch."""
    damage: int = 0
    """Every byte of the records is XORed with it."""

    def encoded(self) -> bytes:
        """Its bytes; all its ids must be numbers by now."""
        base_ms = at_ms(self.at)
        deltas = self.deltas or tuple(range(len(self.records)))
        made = encode(
            [
                Record(delta, base_ms + later_ms, key, value)
                for delta, (later_ms, key, value) in zip(deltas, self.records, strict=True)
            ],
            compression=Compression(self.codec),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=self.is_transactional,
        )
        header = decode_header(made)._replace(**dict(self.header))
        payload = bytes(byte ^ self.damage for byte in made[HEADER_BYTES:])
        covered = HEADER.pack(*header)[ATTRIBUTES_AT:] + payload
        header = header._replace(crc=(crc32c(covered) + self.crc) % 2**32)
        whole = HEADER.pack(*header) + payload
        return whole[: len(whole) - self.cut] + self.tail


def told(data: bytes | memoryview, when: Callable[[int], Any], who: Callable[[int], Any]) -> list[Any]:
    """A Fetch's batches in a comparable form, without a cut one.

    when, who: make timestamps and producer ids comparable.
    """
    found: list[Any] = []
    try:
        for batch in batches(data):
            header = decode_header(batch)
            is_right = crc32c(batch[ATTRIBUTES_AT:]) == header.crc
            found.append(
                {
                    "offsets": (header.base_offset, header.last_offset),
                    "leader_epoch": header.partition_leader_epoch,
                    "attributes": f"{header.attributes & KNOWN_BITS:#04x}",
                    "producer": (who(header.producer_id), header.producer_epoch, header.base_sequence),
                    "timestamps": (when(header.base_timestamp), when(header.max_timestamp)),
                    "count": header.records_count,
                    "crc": "right" if is_right else "wrong",
                    "records": [_record(record, when) for record in records(batch)],
                }
            )
    except CorruptRecordBatch as error:
        found.append(f"unreadable: {error}")
    return found


def _record(record: Record, when: Callable[[int], Any]) -> Any:
    return record.offset, when(record.timestamp_ms), record.key, record.value, record.headers


def moment(ms: int) -> int | str:
    """A timestamp in a form that is the same with both servers."""
    if abs(ms - AT_MS) < A_DAY_MS:
        return f"AT{ms - AT_MS:+}" if ms < AT_MS + 1_000_000 else "<now>"
    return ms
