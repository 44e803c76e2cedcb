"""One partition of Apache Kafka, as far as shards are concerned: it knows producers by the rules that kshim's
own broker has for them, which are compared with Kafka's, and forgets those that are silent.

A batch becomes visible and is answered when all replicas have it, which takes a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from kshim.producing.rules import check
from kshim.storage.producers import Produced, Producers, SentBatch
from kshim.upstream.shards.answers import Answer
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Entry, Outgoing
from kshim.upstream.shards.terms import term_of
from schemas.error_code import ErrorCode
from schemas.internal_topics.shard_claim import KEY, decode_claim
from schemas.records.batch import RecordBatchHeader
from tests.simulation.groups.clock import SimulatedClock

FORGETS_MS = 20 * 60_000
"""producer.id.expiration.ms; it must be longer than a leader rests, and than requests are on their way."""
VALUE = b"value"
"""The key of the records that are no claims."""
BEFORE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS)


@dataclass(frozen=True)
class Stored:
    """A batch in the log; a value of None was removed by compaction."""

    header: RecordBatchHeader
    entries: tuple[tuple[bytes, bytes | None], ...]

    @property
    def batch(self) -> Batch:
        claims = [decode_claim(value) for key, value in self.entries if key == KEY and value is not None]
        term = term_of(self.header.producer_id, self.header.producer_epoch)
        return Batch(self.header.next_offset, term, claims[-1] if claims else None)

    @property
    def values(self) -> list[bytes]:
        return [value for key, value in self.entries if key == VALUE and value is not None]


class Kafka:
    """The log of the partition, and what is known of its producers."""

    def __init__(self, clock: SimulatedClock, chance: Random) -> None:
        self._clock, self._chance = clock, chance
        self._producers = Producers()
        self._log: list[Stored] = []
        self._end = 0
        self.high_watermark = 0
        self.order: list[bytes] = []
        """All values ever appended, in the order of the log."""
        self.trouble = 0.0
        """How likely it is that a batch is refused for a while, or acknowledged in vain."""
        self.slowest_ms = 3
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self.forgotten = 0

    def append(self, batch: Outgoing, answered: Callable[[Answer], None]) -> None:
        """Take a batch in, or not; `answered` is called once."""
        if self._chance.random() < self.trouble:
            answered(Answer(self._chance.choice(BEFORE)))
            return
        self.forgotten += len(self._producers.forget(self._clock.now_ms - FORGETS_MS))
        header = self._header(batch)
        found = check(self._producers.get(header.producer_id), header)
        if isinstance(found, ErrorCode) and found is not ErrorCode.NONE:
            answered(Answer(found))
            return
        if isinstance(found, SentBatch):
            end, base_offset = found.base_offset + len(batch.entries), found.base_offset
        else:
            base_offset = self._end
            end = self._end = base_offset + len(batch.entries)
            self._producers.replay([Produced(header, base_offset, self._clock.now_ms, None)])
            stored = Stored(header._replace(base_offset=base_offset), tuple(batch.entries))
            self._log.append(stored)
            self._note(stored)
            self._clock.after(self._chance.randint(0, self.slowest_ms), self._replicated, end)
        done = ErrorCode.NONE
        if self._chance.random() < self.trouble:
            done = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        self._waiting.append((end, lambda: answered(Answer(done, base_offset if not done else -1))))
        self._replicated(self.high_watermark)

    def _note(self, stored: Stored) -> None:
        """Remember what was appended."""
        self.order += stored.values

    def _header(self, batch: Outgoing) -> RecordBatchHeader:
        count = len(batch.entries)
        empty = RecordBatchHeader(*[0] * 13)
        return empty._replace(
            last_offset_delta=count - 1,
            producer_id=batch.term.producer_id,
            producer_epoch=batch.term.producer_epoch,
            base_sequence=batch.base_sequence,
            records_count=count,
        )

    def _replicated(self, up_to: int) -> None:
        self.high_watermark = max(self.high_watermark, up_to)
        ready = [answer for end, answer in self._waiting if end <= self.high_watermark]
        self._waiting = [each for each in self._waiting if each[0] > self.high_watermark]
        for answer in ready:
            answer()

    def fetch(self, offset: int) -> tuple[list[Stored], int]:
        """Some batches from `offset` on, and the high watermark."""
        visible = [
            s
            for s in self._log
            if s.header.next_offset > offset and s.header.next_offset <= self.high_watermark
        ]
        return visible[: self._chance.randint(1, 5)], self.high_watermark

    def compact(self) -> None:
        """Keep the last record of each key, and the last batch of each producer, even without records."""
        seen: set[bytes] = set()
        producers: set[int] = set()
        kept: list[Stored] = []
        visible = [stored for stored in self._log if stored.header.next_offset <= self.high_watermark]
        for stored in reversed(visible):
            entries = []
            for key, value in reversed(stored.entries):
                entries.append((key, None if key in seen else value))
                seen.add(key)
            entries.reverse()
            is_last = stored.header.producer_id not in producers
            producers.add(stored.header.producer_id)
            if is_last or any(value is not None for _, value in entries):
                kept.append(replace(stored, entries=tuple(entries)))
        self._log = kept[::-1] + self._log[len(visible) :]


def value_of(number: int) -> Sequence[Entry]:
    return [(VALUE, b"%d" % number)]
