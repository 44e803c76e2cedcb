"""One partition of Apache Kafka as bytes, and its transaction coordinator, as far as a shard is concerned.

The coordinator keeps the rules for which integration/upstream/test_markers.py asks Apache Kafka: a producer
has one transaction at a time, and each end is a marker in the log, sooner or later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    OffsetCommitKey,
    OffsetCommitValue,
    TopicId,
    decode_key,
    decode_value,
)
from schemas.internal_topics.pending_offset import KEY as PENDING_KEY
from schemas.internal_topics.pending_offset import (
    PendingKey,
    decode_pending_key,
    decode_pending_value,
    encode_pending_key,
)
from schemas.records.batch import RecordBatchHeader, encode_entries, patch
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.simulation.groups.clock import SimulatedClock
from tests.simulation.shards.kafka import Kafka, Stored

MARKERS_STAY_MS = 120_000
"""delete.retention.ms; it must be longer than requests are on their way."""
GONE = (encode_pending_key(PendingKey(0, 0, b"gone")), None)
"""In place of a record that compaction has removed."""


@dataclass(eq=False)
class Transaction:
    """One transaction, as it was."""

    producer_id: int
    begun_at: int
    """The end of the log."""
    committed: bool | None = None
    """None until it has ended."""
    marker_at: int | None = None


@dataclass(eq=False)
class Producer:
    """A producer, as the transaction coordinator knows it; its transactional id is its producer id."""

    producer_id: int
    bumps: bool
    """Whether each transaction has its own epoch (KIP-890)."""
    epoch: int = 0
    current: Transaction | None = None
    is_ending: bool = False
    all: list[Transaction] = field(default_factory=list)


@dataclass(frozen=True)
class End(Stored):
    """A marker in the log."""

    marker: EndTxnMarker = field(kw_only=True)
    written_ms: int = field(kw_only=True)


class KafkaWithTransactions(Kafka):
    """A log in which transactions end."""

    def __init__(self, clock: SimulatedClock, chance: Random) -> None:
        super().__init__(clock, chance)
        self.producers: dict[int, Producer] = {}
        self.slowest_marker_ms = 5
        self.committed = -1
        """What the group has committed at the upstream's own coordinator."""
        self.topic_id = UUID(int=1)
        """That of the topic for which offsets are committed; it counts up."""
        self.kept_for: dict[int, TopicId] = {}
        """The id of the topic with each offset in the log, by the place there."""
        self.plain: dict[int, int] = {}
        """Where each number lies that was committed plainly."""
        self.pending: dict[int, list[int]] = {}
        """Where each number lies that was committed in a transaction."""

    # ---- the log

    def _note(self, stored: Stored) -> None:
        for place, (key, value) in enumerate(stored.entries):
            offset = stored.header.base_offset + place
            if value is None:
                continue
            if key[:2] == PENDING_KEY:
                offset_key = decode_key(decode_pending_key(key).offset_key)
                number = self._number(offset, offset_key, decode_pending_value(value).offset_value)
                self.pending.setdefault(number, []).append(offset)
            elif (
                key[:2] == b"\0\1"
                and (number := self._number(offset, decode_key(key), value)) not in self.pending
            ):
                self.plain.setdefault(number, offset)

    def _number(self, place: int, key: object, value: bytes) -> int:
        assert isinstance(key, OffsetCommitKey)
        committed = decode_value(key, value)
        assert isinstance(committed, OffsetCommitValue)
        self.kept_for[place] = committed.topic_id
        return committed.offset

    def make_again(self) -> None:
        """Delete the topic, with the offset that the upstream has for it, and create it."""
        self.topic_id = UUID(int=self.topic_id.int + 1)
        self.committed = -1

    def data(self, offset: int) -> tuple[bytes, int]:
        """Some batches from `offset` on as bytes, and the high watermark."""
        stored, high_watermark = self.fetch(offset)
        return b"".join(map(_encoded, stored)), high_watermark

    def compact(self) -> None:
        """Compact like the simpler partition. Later remove the markers of transactions without records,
        too. The last records stay, as Kafka never compacts the active segment.
        """
        seen: set[bytes] = set()
        producers: set[int] = set()
        kept: list[Stored] = []
        visible = [stored for stored in self._log if stored.header.next_offset <= self.high_watermark]
        for stored in reversed(visible):
            entries = []
            for entry in reversed(stored.entries):
                entries.append(GONE if entry[0] in seen else entry)
                seen.add(entry[0])
            entries.reverse()
            is_last = stored.header.producer_id not in producers
            producers.add(stored.header.producer_id)
            if isinstance(stored, End) or is_last or any(entry is not GONE for entry in entries):
                kept.append(replace(stored, entries=tuple(entries)))
        rest = self._log[len(visible) :]
        pending = {
            decode_pending_key(key).producer_id
            for stored in (*kept, *rest)
            for key, value in stored.entries
            if key[:2] == PENDING_KEY and value is not None
        }
        until_ms = self._clock.now_ms - MARKERS_STAY_MS
        end_offset = max((stored.header.next_offset for stored in (*kept, *rest)), default=0)
        self._log = [
            stored
            for stored in (*reversed(kept), *rest)
            if not isinstance(stored, End)
            or stored.marker.producer_id in pending
            or stored.header.next_offset == end_offset
            or stored.written_ms > until_ms
        ]

    # ---- the transaction coordinator

    def add(self, producer_id: int, epoch: int) -> ErrorCode:
        """AddPartitionsToTxn."""
        producer = self.producers[producer_id]
        if producer.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        if producer.is_ending:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if producer.current is None:
            producer.current = Transaction(producer_id, self._end)
            producer.all.append(producer.current)
        return ErrorCode.NONE

    def end(self, producer_id: int, epoch: int, *, committed: bool) -> ErrorCode:
        """EndTxn."""
        producer = self.producers[producer_id]
        if producer.epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        if producer.is_ending:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if producer.current is None and not producer.bumps:
            return ErrorCode.INVALID_TXN_STATE
        producer.epoch += producer.bumps
        self._finish(producer, committed=committed)
        return ErrorCode.NONE

    def abort(self, producer_id: int) -> None:
        """The transaction takes too long, or another producer has come."""
        producer = self.producers[producer_id]
        if producer.current is not None and not producer.is_ending:
            producer.epoch += 1
            self._finish(producer, committed=False)

    def _finish(self, producer: Producer, *, committed: bool) -> None:
        if producer.current is None:
            return
        producer.is_ending = True
        producer.current.committed = committed
        marker = EndTxnMarker(producer.producer_id, producer.epoch, committed, 0, self._clock.now_ms)
        self._clock.after(self._chance.randint(0, self.slowest_marker_ms), self._mark, producer, marker)

    def _mark(self, producer: Producer, marker: EndTxnMarker) -> None:
        """Write the marker; the transaction is over when all replicas have it."""
        offset, self._end = self._end, self._end + 1
        header = RecordBatchHeader(*[0] * 13)._replace(base_offset=offset, producer_id=marker.producer_id)
        self._log.append(End(header, (), marker=marker, written_ms=self._clock.now_ms))
        assert producer.current is not None
        producer.current.marker_at = offset

        def replicated() -> None:
            self._replicated(offset + 1)
            producer.current, producer.is_ending = None, False

        self._clock.after(self._chance.randint(0, self.slowest_ms), replicated)


def _encoded(stored: Stored) -> bytes:
    header = stored.header
    if isinstance(stored, End):
        return patch(encode_marker(stored.marker), header.base_offset, 0)
    batch = encode_entries(
        stored.entries,
        0,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    return patch(batch.data, header.base_offset, 0)
