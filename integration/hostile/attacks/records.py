"""Attacks with records that are produced, stored and fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from integration.hostile.attack import MB, Attack, Volley
from integration.hostile.batches import KEYED, KEYLESS, batch, bomb, now_ms
from integration.hostile.requests import answers, create_topic, fetch, list_offsets, produce
from kshim.testing.wire import Wire
from schemas.records.batch import Compression

HOUR_MS = 3_600_000
EXPANDED_BYTES = 256 * 1024 * 1024
MOST_RECORDS = EXPANDED_BYTES // len(KEYLESS)
MOST_KEYED_RECORDS = EXPANDED_BYTES // len(KEYED)


def _produce_bomb(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    return [
        Volley(label="38 M records", frames=[produce(bomb(MOST_RECORDS))]),
        Volley(label="38 M records, 10 h ahead", frames=[produce(bomb(MOST_RECORDS, ahead_ms=10 * HOUR_MS))]),
    ]


def _produce_small_bomb(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    return [
        Volley(label="1 M records", frames=[produce(bomb(1_000_000))] * 5),
        Volley(label="1 M records, 10 h ahead", frames=[produce(bomb(1_000_000, ahead_ms=10 * HOUR_MS))] * 5),
    ]


def _produce_many_bombs(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    return [Volley(label="100 entries", frames=[produce(*[bomb(12_000_000)] * 100)])]


def _stored_bomb(wire: Wire, configs: Mapping[str, str], record: bytes, count: int) -> Sequence[Volley]:
    create_topic(wire, configs=configs)
    bombs = produce(bomb(count, max_ahead_ms=HOUR_MS // 2, record=record))
    return [
        Volley(label="Produce", frames=[bombs]),
        Volley(label="ListOffsets by timestamp", frames=[list_offsets(now_ms() + HOUR_MS // 4)] * 20),
    ]


def _readers(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    value = batch(_record(900_000), 1, Compression.NONE, now_ms(), now_ms())
    answers(wire, [produce(value)] * 67, in_flight=4)
    frames = [fetch(55 * MB)]
    return [Volley(label="Fetch", frames=frames, connections=60, reads=False, hold_s=5)]


def _max_timestamp(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    small = batch(KEYLESS, 1, Compression.NONE, now_ms(), now_ms() + 1000 * HOUR_MS)
    answers(wire, [produce(*[small] * 2000)] * 100, in_flight=4)
    frames = [list_offsets(now_ms() + HOUR_MS)]
    return [Volley(label="ListOffsets by timestamp", frames=frames * 20)]


def _record(value_bytes: int) -> bytes:
    """A record with only a value, of `value_bytes`."""
    body = b"\0\0\0\1" + _varint(value_bytes) + bytes(value_bytes) + b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(out) + bytes([rest])


ATTACKS = (
    Attack(
        name="produce-bomb",
        what="batches of 23 KB that expand to 256 MB of the smallest records",
        arm=_produce_bomb,
    ),
    Attack(
        name="produce-small-bomb",
        what="batches of 700 bytes that expand to a million records",
        arm=_produce_small_bomb,
        quick=True,
    ),
    Attack(
        name="produce-many-bombs",
        what="one Produce with a hundred batches of 8 KB that expand to 12 million records each",
        arm=_produce_many_bombs,
    ),
    Attack(
        name="stored-bomb",
        what="ListOffsets by timestamp in a stored batch that expands to 256 MB",
        arm=lambda wire: _stored_bomb(wire, {}, KEYLESS, MOST_RECORDS),
    ),
    Attack(
        name="stored-bomb-compacted",
        what="the same in a compacted topic, whose records must have keys",
        arm=lambda wire: _stored_bomb(wire, {"cleanup.policy": "compact"}, KEYED, MOST_KEYED_RECORDS),
    ),
    Attack(
        name="readers-that-do-not-read",
        what="60 connections fetch 60 MB each and never read the answer",
        arm=_readers,
    ),
    Attack(
        name="max-timestamp",
        what="ListOffsets by timestamp among 200,000 batches that claim a timestamp they do not have",
        arm=_max_timestamp,
    ),
)
