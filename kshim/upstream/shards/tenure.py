"""The tenure of a shard's leader: what it appends, in order, and until when it may answer what it knows.

One batch is under way at a time. Whatever is to be appended meanwhile waits, and goes into the next batch
together. A batch without an answer is sent again as it is, and Kafka, which knows its sequence, appends it
once. If there is no answer within TIMEOUT_MS nobody knows what has become of it, so the tenure is over: the
shard has to be taken over again, which reads what is in the log.

The log may grow behind the leader without it: the upstream writes a marker when a transaction ends that has
committed offsets here. What others have written is found in front of an acknowledged batch, or at the end of
the log, and read before anything else happens. Markers are told in their order, before what is acknowledged
or proven behind them; whatever another leader has written ends the tenure. What others write who cannot lead
counts for nothing.

The leader may answer without an append as long as its last proof is younger than its lease. A proof is a
question that was asked then, and shows that no other leader had a batch in the log behind this one's last:
an acknowledged batch, or the end of the log where it has to be. Whoever takes the shard over waits until that
lease is over.

Pure: time is an argument, in ms of any clock that does not go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kshim.upstream.shards.answers import Answer, Meaning
from kshim.upstream.shards.batch_limit import MOST_BYTES
from kshim.upstream.shards.takeover import Batch, Lead, finding_of
from kshim.upstream.shards.terms import Term, Terms
from schemas.records.end_txn_marker import EndTxnMarker

TIMEOUT_MS = 10_000
"""After that, a batch or a question without an answer ends the tenure."""
CUT_OFF_MS = 30_000
"""A leader without a proof for so long appends nothing more: it may have slept until Kafka had forgotten who
came after it.
"""
RENEW_MS = 10 * 60_000
"""A leader that has appended nothing for so long writes its claim again: after producer.id.expiration.ms of
silence, a day by default, Kafka forgets a producer, and takes batches of any epoch.
"""
LAST_SEQUENCE = 2**31 - 1

Entry = tuple[bytes, bytes | None]
"""Key and value of a record."""
Token = int
"""Stands for one call of `append` or `prove`; they are settled in their order."""


class Outgoing(NamedTuple):
    """A batch to be sent; the same again until it is answered."""

    term: Term
    base_sequence: int
    entries: Sequence[Entry]


class _Waiting(NamedTuple):
    """What is to be appended or, without entries, proven."""

    token: Token
    since_ms: int
    entries: Sequence[Entry]
    size: int


class _Found(NamedTuple):
    """What others have written, which is to be read, and what is settled then."""

    until: int
    """The offset behind it."""
    appended: int = 0
    """How many records of the leader's own are behind it, acknowledged; 0: it is at the end of the log."""
    asked_ms: int = 0
    """When that end was asked for."""


class Marker(NamedTuple):
    """The end of a transaction, and its offset."""

    marker: EndTxnMarker
    offset: int


class Tenure:
    """What one leader of one shard has appended, and may answer."""

    def __init__(
        self, lead: Lead, lease_ms: int, claimed_ms: int, claim: Entry, batch_bytes: int = MOST_BYTES
    ) -> None:
        """claimed_ms: when the appended claim was sent. claim: the record that leads the shard on.
        batch_bytes: the most that several records of a batch may take.
        """
        self.over: str = ""
        """Why the tenure is over, if it is."""
        self.finding = ""
        """The last batch that counts for nothing, in words."""
        self._terms = Terms(lead.term)
        self._term = lead.term
        self._sequence = lead.next_sequence
        self._next_offset = lead.next_offset
        self._lease_ms = lease_ms
        self._proven_ms = claimed_ms
        """When the last question was sent that has proven that nobody else leads."""
        self._claim = claim
        self._batch_bytes = batch_bytes
        self._appended_ms = claimed_ms
        self._tokens = 0
        self._waiting: deque[_Waiting] = deque()
        self._under_way: Outgoing | None = None
        self._sent_ms = 0
        """When the batch under way was sent last."""
        self._first_sent_ms = 0
        """When it was sent first. It is in the log since then, and what is behind it there was not read."""
        self._asked_ms: int | None = None
        """When the question was sent that is under way."""
        self._found: _Found | None = None
        self._is_reading = False

    # ---- for the coordinator

    def is_fresh(self, now_ms: int) -> bool:
        """Whether the leader may answer what it knows, without a further proof."""
        return not self.over and now_ms < self._proven_ms + self._lease_ms

    def append(self, entries: Sequence[Entry], now_ms: int) -> Token:
        """Append records, in as few batches as may be; or, without records, prove that nobody else leads."""
        size = sum(map(_size, entries))
        if size <= self._batch_bytes:
            return self._wait(entries, size, now_ms)
        token = 0
        for some, some_bytes in _pieces(entries, self._batch_bytes):
            token = self._wait(some, some_bytes, now_ms)
        return token

    def _wait(self, entries: Sequence[Entry], size: int, now_ms: int) -> Token:
        self._tokens += 1
        self._waiting.append(_Waiting(self._tokens, now_ms, entries, size))
        return self._tokens

    # ---- for the connection

    def to_send(self, now_ms: int) -> Outgoing | None:
        """The batch to be sent now; None while one is under way, or nothing is to be appended."""
        self.pass_time(now_ms)
        if self.over or self._is_busy:
            return None
        if not self._waiting and now_ms - self._appended_ms >= RENEW_MS:
            self.append([self._claim], now_ms)
        entries: list[Entry] = []
        size = 0
        for waiting in self._waiting:
            if entries and size + waiting.size > self._batch_bytes:
                break
            entries += waiting.entries
            size += waiting.size
        if not entries:
            return None
        self._under_way = Outgoing(self._term, self._sequence, tuple(entries))
        self._sent_ms = self._first_sent_ms = now_ms
        return self._under_way

    def to_send_again(self, now_ms: int) -> Outgoing | None:
        """The batch under way, after an answer that was no answer; None if the tenure is over."""
        self.pass_time(now_ms)
        self._sent_ms = now_ms
        return None if self.over else self._under_way

    def was_answered(self, answer: Answer) -> list[Token]:
        """Note the answer to the batch under way; return what is durable now. AGAIN: send it again."""
        batch = self._under_way
        if self.over or batch is None:
            return []
        if answer.meaning is Meaning.AGAIN:
            return []
        if answer.meaning is not Meaning.APPENDED:
            self.over = answer.error_code.name
            return []
        self._under_way = None
        self._sequence = (self._sequence + len(batch.entries)) & LAST_SEQUENCE
        if answer.base_offset > self._next_offset:
            self._found = _Found(answer.base_offset, len(batch.entries))
            return []
        return self._acknowledged(answer.base_offset, len(batch.entries))

    def _acknowledged(self, base_offset: int, count: int) -> list[Token]:
        """Note that so many records are durable; return what that settles."""
        self._next_offset = base_offset + count
        self._appended_ms = self._sent_ms
        self._prove(self._sent_ms)
        done = []
        while count or (self._waiting and not self._waiting[0].entries):
            waiting = self._waiting[0]
            if not waiting.entries and waiting.since_ms > self._first_sent_ms:
                break
            self._waiting.popleft()
            count -= len(waiting.entries)
            done.append(waiting.token)
        assert count == 0
        return done

    def asks(self, now_ms: int) -> bool:
        """Whether to ask for the end of the log now; if so, it counts as asked."""
        if self.over or self._is_busy or self._asked_ms is not None:
            return False
        self._asked_ms = now_ms
        return True

    def was_told_end(self, end_offset: int | None) -> list[Token]:
        """Note the end of the log (its high watermark; None: no answer). Return what is proven now."""
        asked_ms, self._asked_ms = self._asked_ms, None
        if self.over or asked_ms is None or end_offset is None or self._is_busy:
            return []
        if end_offset > self._next_offset:
            self._found = _Found(end_offset, asked_ms=asked_ms)
        if end_offset != self._next_offset:
            return []  # or the answer is older than the last acknowledged batch
        return self._proven(asked_ms)

    def _proven(self, asked_ms: int) -> list[Token]:
        """Note that nobody else led when that was asked; return what that settles."""
        self._prove(asked_ms)
        done = []
        while self._waiting and not self._waiting[0].entries and self._waiting[0].since_ms <= asked_ms:
            done.append(self._waiting.popleft().token)
        return done

    def to_read(self) -> int | None:
        """Where to read what others have written; None if there is nothing, or it is being read."""
        if self.over or self._found is None or self._is_reading:
            return None
        self._is_reading = True
        return self._next_offset

    def was_read(self, batches: Iterable[Batch] | None) -> list[Marker]:
        """Note what a fetch has brought (None: no answer). Return the markers that it has brought, in their
        order; then `settled` has to be asked.
        """
        self._is_reading = False
        markers: list[Marker] = []
        if self.over or self._found is None or batches is None:
            return markers
        for batch in batches:
            if batch.next_offset > self._found.until:
                self._next_offset = self._found.until  # compaction has removed what was in front of that
                break
            self.finding = batch.finding or self.finding
            if self._terms.takes(batch.term):
                self.over = f"somebody else has written at offset {self._next_offset}"
                break
            self.finding = finding_of(batch) or self.finding
            if batch.marker is not None:
                markers.append(Marker(batch.marker, batch.next_offset - 1))
            self._next_offset = batch.next_offset
        return markers

    def settled(self) -> list[Token]:
        """What is durable or proven now that the markers in front of it were told."""
        found = self._found
        if self.over or found is None or self._is_reading or self._next_offset < found.until:
            return []
        self._found = None
        if found.appended:
            return self._acknowledged(found.until, found.appended)
        return self._proven(found.asked_ms)

    def pass_time(self, now_ms: int) -> None:
        """End the tenure if something waits for too long, or if nothing was proven for too long."""
        if self._waiting and now_ms - self._waiting[0].since_ms >= TIMEOUT_MS:
            self.end(f"not answered within {TIMEOUT_MS / 1000:g} s")
        elif now_ms - self._proven_ms >= CUT_OFF_MS:
            self.end(f"nothing heard for {CUT_OFF_MS / 1000:g} s")

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, and nothing waits."""
        return not self.over and not self._is_busy and not self._waiting

    @property
    def _is_busy(self) -> bool:
        """Whether a batch is under way, or something has to be read before anything else happens."""
        return self._under_way is not None or self._found is not None

    def release(self, claim: Entry) -> Outgoing:
        """Append and answer nothing more. Return a last batch, which tells so whoever comes next.

        claim: the record that lets go of the shard. The tenure must be idle.
        """
        assert self.is_idle
        self.end("released")
        return Outgoing(self._term, self._sequence, (claim,))

    def end(self, why: str) -> None:
        """Append nothing more, and answer nothing more."""
        self.over = self.over or why

    def _prove(self, sent_ms: int) -> None:
        self._proven_ms = max(self._proven_ms, sent_ms)


def _size(entry: Entry) -> int:
    key, value = entry
    return len(key) + len(value or b"")


def _pieces(entries: Iterable[Entry], most_bytes: int) -> Iterator[tuple[list[Entry], int]]:
    """The entries in their order, with their size: as many together as `most_bytes` allow, or one."""
    some: list[Entry] = []
    size = 0
    for entry in entries:
        entry_bytes = _size(entry)
        if some and size + entry_bytes > most_bytes:
            yield some, size
            some, size = [], 0
        some.append(entry)
        size += entry_bytes
    yield some, size
