"""The tenure of a shard's leader: what it appends, in order, and until when it may answer from memory.

One batch is under way at a time. Records that come meanwhile wait, and share the next batch. A batch without
an answer is sent again unchanged; Kafka knows its sequence, and appends it once. Without an answer within
TIMEOUT_MS, the batch may or may not be in the log. So the tenure is over, and the shard has to be taken over
again, which reads the log.

The log may also grow without the leader. The upstream writes a marker when a transaction ends that has
committed offsets in the shard. Such foreign records are found in front of an acknowledged batch or at the end
of the log, and are read before anything else happens. Markers are returned in their order, before any append
or proof behind them is settled. A batch of another leader ends the tenure. All other foreign records are
ignored.

The leader may answer without an append while its last proof is younger than its lease. A proof is a question,
asked at a known time, whose answer shows that no other leader's batch was in the log behind this leader's
last one: an acknowledged batch, or the expected end of the log. The next leader waits until that lease is
over.

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
"""A batch or a question without an answer for so long ends the tenure."""
CUT_OFF_MS = 30_000
"""A leader without a proof for so long appends nothing more. It may have been frozen until Kafka had
forgotten the producers after it.
"""
RENEW_MS = 10 * 60_000
"""A leader that has appended nothing for so long writes its claim again. After producer.id.expiration.ms
without a batch (a day by default), Kafka forgets a producer, and takes batches of any epoch.
"""
LAST_SEQUENCE = 2**31 - 1

Entry = tuple[bytes, bytes | None]
"""Key and value of a record."""
Token = int
"""A number for each call of `append` and `prove`. Tokens are settled in order."""


class Outgoing(NamedTuple):
    """A batch to send; repeated unchanged until it is answered."""

    term: Term
    base_sequence: int
    entries: Sequence[Entry]


class _Waiting(NamedTuple):
    """Records to append, or a proof to get if there are none."""

    token: Token
    since_ms: int
    entries: Sequence[Entry]
    size: int


class _Found(NamedTuple):
    """Foreign records in the log that have to be read, and what is settled afterwards."""

    until: int
    """The offset after the last of them."""
    appended: int = 0
    """How many acknowledged records of the leader follow; 0 if the foreign records end the log."""
    asked_ms: int = 0
    """When the end of the log was asked for."""


class Seen(NamedTuple):
    """What a leader waits for."""

    queued: int
    """The number of writes that the upstream has not acknowledged."""
    lag_ms: int
    """How long the oldest of them has waited; 0 if there is none."""
    proof_age_ms: int
    """How old the last proof is that nobody else leads."""


class Marker(NamedTuple):
    """The end of a transaction, and its offset."""

    marker: EndTxnMarker
    offset: int


class Tenure:
    """The tenure of one leader of one shard."""

    def __init__(
        self, lead: Lead, lease_ms: int, claimed_ms: int, claim: Entry, batch_bytes: int = MOST_BYTES
    ) -> None:
        """claimed_ms: when the claim was sent. claim: its record, with which the leader renews it.
        batch_bytes: limit of several records in a batch.
        """
        self.over: str = ""
        """Why the tenure is over; empty if it is not."""
        self.finding = ""
        """What is wrong with the last batch that was ignored, for the log."""
        self._terms = Terms(lead.term)
        self._term = lead.term
        self._sequence = lead.next_sequence
        self._next_offset = lead.next_offset
        self._lease_ms = lease_ms
        self._proven_ms = claimed_ms
        """When the last question was sent whose answer proved that nobody else leads."""
        self._claim = claim
        self._batch_bytes = batch_bytes
        self._appended_ms = claimed_ms
        self._tokens = 0
        self._waiting: deque[_Waiting] = deque()
        self._under_way: Outgoing | None = None
        self._sent_ms = 0
        """When the batch under way was last sent."""
        self._first_sent_ms = 0
        """When it was first sent. It may be in the log since then, and what is behind it was not read."""
        self._asked_ms: int | None = None
        """When the question under way was sent; None if there is none."""
        self._found: _Found | None = None
        self._is_reading = False

    # ---- for the coordinator

    def is_fresh(self, now_ms: int) -> bool:
        """True if the leader may answer from memory, without a further proof."""
        return not self.over and now_ms < self._proven_ms + self._lease_ms

    def seen(self, now_ms: int) -> Seen:
        """Return what the leader waits for."""
        since_ms = [each.since_ms for each in self._waiting if each.entries]
        lag_ms = now_ms - since_ms[0] if since_ms else 0
        return Seen(len(since_ms), lag_ms, now_ms - self._proven_ms)

    def append(self, entries: Sequence[Entry], now_ms: int) -> Token:
        """Append one or more records, in as few batches as possible."""
        size = sum(map(_size, entries))
        if size <= self._batch_bytes:
            return self._wait(entries, size, now_ms)
        token = 0
        for some, some_bytes in _pieces(entries, self._batch_bytes):
            token = self._wait(some, some_bytes, now_ms)
        return token

    def prove(self, now_ms: int) -> Token:
        """Prove that nobody else led the shard at `now_ms`, by the next append or question."""
        return self._wait((), 0, now_ms)

    def _wait(self, entries: Sequence[Entry], size: int, now_ms: int) -> Token:
        self._tokens += 1
        self._waiting.append(_Waiting(self._tokens, now_ms, entries, size))
        return self._tokens

    # ---- for the connection

    def to_send(self, now_ms: int) -> Outgoing | None:
        """Return the batch to send now; None if one is under way, or there is nothing to append."""
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
        """Return the batch under way, to be sent again after Meaning.AGAIN; None if the tenure is over."""
        self.pass_time(now_ms)
        self._sent_ms = now_ms
        return None if self.over else self._under_way

    def was_answered(self, answer: Answer) -> list[Token]:
        """Note the answer to the batch under way; return what is durable now. After AGAIN, send it again."""
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
        """Note that so many records are durable; return the tokens that this settles."""
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
        """True if the end of the log has to be asked for now. It then counts as asked for."""
        if self.over or self._is_busy or self._asked_ms is not None:
            return False
        self._asked_ms = now_ms
        return True

    def learn_end(self, end_offset: int | None) -> list[Token]:
        """Note the end of the log (its high watermark; None without an answer). Return what is proven now."""
        asked_ms, self._asked_ms = self._asked_ms, None
        if self.over or asked_ms is None or end_offset is None or self._is_busy:
            return []
        if end_offset > self._next_offset:
            self._found = _Found(end_offset, asked_ms=asked_ms)
        if end_offset != self._next_offset:
            return []  # or the answer is older than the last acknowledged batch
        return self._proven(asked_ms)

    def _proven(self, asked_ms: int) -> list[Token]:
        """Note that nobody else led at `asked_ms`; return the tokens that this settles."""
        self._prove(asked_ms)
        done = []
        while self._waiting and not self._waiting[0].entries and self._waiting[0].since_ms <= asked_ms:
            done.append(self._waiting.popleft().token)
        return done

    def to_read(self) -> int | None:
        """Return the offset of foreign records to read; None if there are none, or they are being read."""
        if self.over or self._found is None or self._is_reading:
            return None
        self._is_reading = True
        return self._next_offset

    def was_read(self, batches: Iterable[Batch] | None) -> list[Marker]:
        """Note the batches of a fetch (None without an answer). Return the markers among them, in order. Call
        `settled` afterwards.
        """
        self._is_reading = False
        markers: list[Marker] = []
        if self.over or self._found is None or batches is None:
            return markers
        for batch in batches:
            if batch.next_offset > self._found.until:
                self._next_offset = self._found.until  # compaction has removed the records before that offset
                break
            self.finding = batch.finding or self.finding
            if self._terms.takes(batch.term):
                self.over = "another process leads it"
                break
            self.finding = finding_of(batch) or self.finding
            if batch.marker is not None:
                markers.append(Marker(batch.marker, batch.next_offset - 1))
            self._next_offset = batch.next_offset
        return markers

    def settled(self) -> list[Token]:
        """Return what is durable or proven, after the markers in front of it were handled."""
        found = self._found
        if self.over or found is None or self._is_reading or self._next_offset < found.until:
            return []
        self._found = None
        if found.appended:
            return self._acknowledged(found.until, found.appended)
        return self._proven(found.asked_ms)

    def pass_time(self, now_ms: int) -> None:
        """End the tenure if an append has waited too long, or the last proof is too old."""
        if self._waiting and now_ms - self._waiting[0].since_ms >= TIMEOUT_MS:
            self.end(f"not answered within {TIMEOUT_MS / 1000:g} s")
        elif now_ms - self._proven_ms >= CUT_OFF_MS:
            self.end(f"nothing heard for {CUT_OFF_MS / 1000:g} s")

    @property
    def is_idle(self) -> bool:
        """True if nothing is under way, and nothing waits."""
        return not self.over and not self._is_busy and not self._waiting

    @property
    def _is_busy(self) -> bool:
        """True if a batch is under way, or foreign records have to be read first."""
        return self._under_way is not None or self._found is not None

    def release(self, claim: Entry) -> Outgoing:
        """End the tenure. Return a last batch, which shows the next leader that it need not wait.

        claim: the record that releases the shard. The tenure must be idle.
        """
        assert self.is_idle
        self.end("released")
        return Outgoing(self._term, self._sequence, (claim,))

    def end(self, why: str) -> None:
        """End the tenure: append and answer nothing more."""
        self.over = self.over or why

    def _prove(self, sent_ms: int) -> None:
        self._proven_ms = max(self._proven_ms, sent_ms)


def _size(entry: Entry) -> int:
    key, value = entry
    return len(key) + len(value or b"")


def _pieces(entries: Iterable[Entry], most_bytes: int) -> Iterator[tuple[list[Entry], int]]:
    """Divide entries, in order, into pieces of at most `most_bytes`, or of one entry. Yield them with their
    size.
    """
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
