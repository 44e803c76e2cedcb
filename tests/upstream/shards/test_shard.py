"""Shards of several processes over one log, which keeps producers as kshim's own broker does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred, DeferredSemaphore, succeed
from twisted.internet.task import Clock

from kshim.callers.once import Once
from kshim.configs.config import Config
from kshim.producing.appends import ProducerAppends
from kshim.storage.interfaces import JournalBatch, StorageError
from kshim.storage.memory import MemoryLog
from kshim.upstream.shards.answers import NO_ANSWER, Answer
from kshim.upstream.shards.attempt import AGAIN_S, DAMAGED_S, REFUSED_S, REREADS, World
from kshim.upstream.shards.batch_limit import DEFAULT_BYTES, BatchLimit
from kshim.upstream.shards.partitions import FETCH_BYTES, Fetched
from kshim.upstream.shards.shard import OVERTAKEN_S, Shard
from kshim.upstream.shards.stored import encode_batch, loaded
from kshim.upstream.shards.takeover import LONGEST_LEASE_MS
from kshim.upstream.shards.tenure import TIMEOUT_MS, Marker, Outgoing
from kshim.upstream.shards.terms import LAST_EPOCH, Term
from schemas.error_code import ErrorCode
from schemas.internal_topics.shard_claim import ShardClaim
from schemas.records.batch import decode_header
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.api.harness import result

LEASE_MS = 500
CLAIM_IDS = count(1)


class OneLog:
    """The partition of the journal."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self._producers = ProducerAppends(self.log, Config())
        self.answers: list[Answer | None] = []
        """What the next appends are answered; None: as it is. Lost answers belong to appended batches."""
        self.appended = 0

    def append(self, partition: int, batch: bytes) -> Deferred[Answer]:
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None and answer is not NO_ANSWER:
            return succeed(answer)
        self.appended += 1
        header = decode_header(batch)
        append = lambda: self.log.append(0, batch, now_ms=0)  # noqa: E731
        found = self._producers.append(0, header, append, now_ms=0)
        if isinstance(found, ErrorCode):
            return succeed(answer or Answer(found))
        return found.addCallback(lambda at: answer or Answer(ErrorCode.NONE, at.base_offset))

    def end(self, partition: int) -> Deferred[int | None]:
        return succeed(self.log.offsets(0).high_watermark)

    def fetch(self, partition: int, offset: int, max_bytes: int = FETCH_BYTES) -> Deferred[Fetched | None]:
        return succeed(Fetched(self.log.read(0, offset, max_bytes), self.log.offsets(0).high_watermark))


class Process:
    """One process with one shard."""

    def __init__(self, log: OneLog, clock: Clock) -> None:
        self.led = self.lost = 0
        self.reasons: list[str] = []
        """Why the shard was lost each time that it was not released."""
        self.limit = BatchLimit()
        self.loaded: list[tuple[bytes, bytes | None]] = []
        self.ended: list[Marker] = []
        self.shard = Shard(
            0,
            World(
                log=log,
                clock=clock,
                now_ms=lambda: int(clock.seconds() * 1000),
                wall_ms=lambda: int(clock.seconds() * 1000),
                new_claim=lambda: ShardClaim(
                    claim_id=UUID(int=next(CLAIM_IDS)), host="here", port=9092, lease_ms=LEASE_MS
                ),
                led=self._led,
                lost=self._lost,
                gave_up=lambda _, why: self.reasons.append(why),
                ended=self._ended,
                once=Once(clock),
                limit=self.limit,
                reading=DeferredSemaphore(1),
            ),
        )

    def _led(self, shard: int) -> Deferred[None]:
        self.led += 1
        found = loaded(self.shard.fetched, self.shard.transactions)
        self.loaded = [entry for each in found if isinstance(each, JournalBatch) for entry in each.records]
        return succeed(None)

    def _lost(self, shard: int) -> None:
        self.lost += 1

    def _ended(self, shard: int, marker: Marker) -> None:
        self.ended.append(marker)
        self.shard.ends(marker)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log() -> OneLog:
    return OneLog()


@pytest.fixture
def new(log: OneLog, clock: Clock) -> Callable[[], Process]:
    return lambda: Process(log, clock)


def pass_s(clock: Clock, for_s: float, *processes: Process) -> None:
    """Pass time, in which the processes look for proofs."""
    for _ in range(round(for_s / 0.1)):
        clock.advance(0.1)
        for process in processes:
            process.shard.poll()


def failed(appended: Deferred[None]) -> str:
    """The reason why an append has failed."""
    failures: list[str] = []
    appended.addErrback(lambda failure: failures.append(str(failure.trap(StorageError) and failure.value)))
    (why,) = failures
    return why


def test_what_is_appended_is_there_for_the_next_leader(new: Callable[[], Process], clock: Clock) -> None:
    first = new()
    first.shard.want()
    assert first.shard.is_led
    assert result(first.shard.append([(b"a", b"1")])) is None
    assert first.shard.may_answer()
    second = new()
    second.shard.want()
    assert not second.shard.is_led, "the lease of the first is not over"
    pass_s(clock, 0.6, second)
    assert second.shard.is_led
    assert second.loaded == [(b"a", b"1")]


def test_whoever_is_taken_over_is_told_by_its_next_append(new: Callable[[], Process], clock: Clock) -> None:
    first, second = new(), new()
    first.shard.want()
    second.shard.want()
    appended = first.shard.append([(b"a", b"1")])
    assert failed(appended) == "INVALID_PRODUCER_EPOCH"
    assert first.lost == 1


def test_whoever_is_taken_over_finds_out_without_an_append(new: Callable[[], Process], clock: Clock) -> None:
    first, second = new(), new()
    first.shard.want()
    second.shard.want()
    assert first.shard.is_led
    first.shard.poll()
    assert not first.shard.is_led
    assert (first.lost, second.lost) == (1, 0)


def test_without_a_proof_nothing_is_answered(new: Callable[[], Process], clock: Clock) -> None:
    process = new()
    process.shard.want()
    clock.advance(LEASE_MS / 1000 + 0.001)
    assert not process.shard.may_answer()
    proof = process.shard.append([])
    process.shard.poll()
    assert result(proof) is None
    assert process.shard.may_answer()


def test_nobody_waits_for_who_has_let_go(new: Callable[[], Process], clock: Clock) -> None:
    first, second = new(), new()
    first.shard.want()
    assert result(first.shard.release()) is None
    assert not first.shard.is_led
    assert first.lost == 1
    second.shard.want()
    assert second.shard.is_led


def test_batches_are_smaller_where_one_was_too_large(
    log: OneLog, new: Callable[[], Process], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    process = new()
    process.shard.want()
    log.answers = [Answer(ErrorCode.MESSAGE_TOO_LARGE)]
    entries = [(b"%d" % number, bytes(1000)) for number in range(10)]
    assert failed(process.shard.append(entries)) == "MESSAGE_TOO_LARGE"
    assert process.limit.max_message_bytes < 10_000
    assert f"set its max.message.bytes to {DEFAULT_BYTES} or more" in caplog.text
    pass_s(clock, OVERTAKEN_S + 1, process)
    assert process.shard.is_led
    before = log.appended
    appended = process.shard.append(entries)
    assert result(appended) is None
    assert log.appended - before > 2


def test_a_lost_answer_is_asked_for_again(log: OneLog, new: Callable[[], Process], clock: Clock) -> None:
    process = new()
    process.shard.want()
    log.answers = [NO_ANSWER, Answer(ErrorCode.NOT_ENOUGH_REPLICAS)]
    appended = process.shard.append([(b"a", b"1")])
    later = process.shard.append([(b"a", b"2")])
    clock.pump([AGAIN_S] * 3)
    assert result(appended) is result(later) is None
    assert log.log.offsets(0).high_watermark == 3, "a claim, and each record once"


def test_if_no_answer_comes_the_shard_is_taken_over_anew(
    log: OneLog, new: Callable[[], Process], clock: Clock
) -> None:
    process = new()
    process.shard.want()
    log.answers = [NO_ANSWER] * 10_000
    appended = process.shard.append([(b"a", b"1")])
    pass_s(clock, TIMEOUT_MS / 1000 + 0.2, process)
    assert failed(appended) == "not answered within 10 s"
    assert (process.led, process.lost) == (1, 1)
    log.answers = []
    pass_s(clock, 2, process)
    assert process.shard.is_led
    assert process.led == 2
    assert process.loaded == [(b"a", b"1")], "it was in the log after all"


def test_full_disks_are_told_once_and_a_shard_is_led_again_when_there_is_room(
    log: OneLog, new: Callable[[], Process], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    process = new()
    process.shard.want()
    log.answers = [Answer(ErrorCode.KAFKA_STORAGE_ERROR)] * 10_000
    appended = process.shard.append([(b"a", b"1")])
    pass_s(clock, TIMEOUT_MS / 1000 + 5, process)
    assert failed(appended) == "not answered within 10 s"
    assert not process.shard.is_led
    assert caplog.text.count("the upstream appends nothing to the groups' topic: KAFKA_STORAGE_ERROR") == 1
    log.answers = []
    pass_s(clock, 2, process)
    assert process.shard.is_led
    assert result(process.shard.append([(b"a", b"2")])) is None


def test_a_refused_claim_is_tried_again_after_a_while(
    log: OneLog, new: Callable[[], Process], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    process = new()
    log.answers = [Answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    process.shard.want()
    assert "the upstream does not allow kshim to lead shards: TOPIC_AUTHORIZATION_FAILED" in caplog.text
    assert not process.shard.is_led
    clock.advance(REFUSED_S)
    assert process.shard.is_led


def test_a_takeover_is_called_off(log: OneLog, new: Callable[[], Process], clock: Clock) -> None:
    first, second = new(), new()
    first.shard.want()
    second.shard.want()
    result(second.shard.release())
    pass_s(clock, 2, first, second)
    assert not second.shard.is_led
    assert first.led == 2, "it had to take the shard over again"


def test_whoever_was_taken_over_takes_nothing_back_before_it_may_have_been_told(
    new: Callable[[], Process], clock: Clock
) -> None:
    first, second = new(), new()
    first.shard.want()
    second.shard.want()
    pass_s(clock, OVERTAKEN_S - 0.2, first, second)
    assert (first.shard.is_led, second.shard.is_led) == (False, True)
    result(first.shard.release())
    pass_s(clock, 2 * OVERTAKEN_S, first, second)
    assert (first.led, second.lost) == (1, 0)


def test_what_is_under_way_is_settled_before_the_shard_is_let_go(
    log: OneLog, new: Callable[[], Process], clock: Clock
) -> None:
    process = new()
    process.shard.want()
    log.answers = [NO_ANSWER]
    appended = process.shard.append([(b"a", b"1")])
    released = process.shard.release()
    assert process.lost == 1, "nothing is answered any more"
    assert not released.called
    clock.advance(AGAIN_S)
    assert result(appended) is None
    assert result(released) is None


def test_a_claim_that_cannot_be_read_is_waited_for(
    new: Callable[[], Process], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    process = new()
    process.shard.want()
    result(process.shard.append([(b"\x4b\x53", b"nonsense")]))
    other = new()
    other.shard.want()
    assert "shard 0: the claim at offset 1 cannot be read" in caplog.text
    pass_s(clock, LONGEST_LEASE_MS / 1000, other)
    assert not other.shard.is_led
    pass_s(clock, LONGEST_LEASE_MS / 1000 * 0.2, other)
    assert other.shard.is_led


def test_a_log_that_cannot_be_read_on_is_tried_again(
    log: OneLog,
    new: Callable[[], Process],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(log, "fetch", lambda *_: succeed(Fetched(b"\xff" * 100, 9)))
        process = new()
        process.shard.want()
    assert "shard 0 is not led; kshim tries again in 60 s: at offset 0 or behind it" in caplog.text
    clock.advance(DAMAGED_S)
    assert process.shard.is_led


def test_a_damaged_batch_is_fetched_again_and_then_skipped(
    log: OneLog,
    new: Callable[[], Process],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = new()
    first.shard.want()
    result(first.shard.append([(b"a", b"1")]))
    result(first.shard.release())
    read = log.log.read
    damaged = lambda *where: bytes(read(*where)).replace(b"\x02a\x021", b"\x02a\x7f1")  # noqa: E731
    monkeypatch.setattr(log.log, "read", damaged)
    process = new()
    process.shard.want()
    clock.pump([AGAIN_S] * (REREADS - 1))
    assert "is corrupt" not in caplog.text
    clock.advance(AGAIN_S)
    assert "shard 0: the batch at offset 1 is corrupt" in caplog.text


def test_one_record_of_a_stranger_costs_nothing(
    log: OneLog, new: Callable[[], Process], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    first = new()
    first.shard.want()
    result(first.shard.append([(b"a", b"1")]))
    strange = encode_batch(Outgoing(Term(2**63 - 1, LAST_EPOCH), 0, ((b"a", b"9"),)), 0)
    log.log.append(0, strange, now_ms=0)
    assert result(first.shard.append([(b"b", b"2")])) is None
    assert first.shard.is_led
    assert "somebody who is no kshim has written" in caplog.text
    second = new()
    second.shard.want()
    pass_s(clock, 0.6, second)
    assert second.shard.is_led
    assert second.loaded == [(b"a", b"1"), (b"b", b"2")]


# ---- transactions

PAUL = (7, 0)
OFFSET = (b"\0\1k", b"v")


def marker_in(log: OneLog, *, committed: bool = True) -> None:
    """The upstream writes the end of Paul's transaction."""
    log.log.append(0, encode_marker(EndTxnMarker(*PAUL, committed, 0, 0)), now_ms=0)


def test_the_end_of_a_transaction_is_told_and_hinders_nothing(
    new: Callable[[], Process], log: OneLog, clock: Clock
) -> None:
    process = new()
    process.shard.want()
    assert result(process.shard.append([OFFSET], PAUL)) is None
    marker_in(log)
    pass_s(clock, 0.1, process)
    assert [found.marker[:3] for found in process.ended] == [(*PAUL, True)]
    assert (process.shard.is_led, process.lost) == (True, 0)
    assert process.shard.transactions.to_keep() == [OFFSET[0]]
    marker_in(log, committed=False)
    assert result(process.shard.append([(b"a", b"1")])) is None
    assert len(process.ended) == 2, "it was in front of the batch"


def test_what_is_written_plainly_removes_what_was_pending(
    new: Callable[[], Process], log: OneLog, clock: Clock
) -> None:
    first = new()
    first.shard.want()
    first.shard.append([OFFSET], PAUL)
    marker_in(log)
    pass_s(clock, 0.1, first)
    first.shard.append([OFFSET])
    assert not first.shard.transactions
    second = new()
    second.shard.want()
    pass_s(clock, 0.6, second)
    assert second.loaded == [OFFSET, OFFSET]
    assert not second.shard.transactions


def test_offsets_that_come_behind_the_end_of_their_transaction_do_not_count(
    new: Callable[[], Process], log: OneLog, clock: Clock
) -> None:
    """The tenure ends, as the coordinator has them already; the next one reads the log."""
    process = new()
    process.shard.want()
    marker_in(log)
    appended = process.shard.append([OFFSET], PAUL)
    assert failed(appended) == "producer 7 has ended a transaction that it still writes to"
    assert process.lost == 1
    pass_s(clock, OVERTAKEN_S + 1.2, process)
    assert process.shard.is_led
    assert process.loaded == []


def test_if_it_is_an_abort_the_tenure_goes_on(new: Callable[[], Process], log: OneLog) -> None:
    process = new()
    process.shard.want()
    marker_in(log, committed=False)
    assert result(process.shard.append([OFFSET], PAUL)) is None
    assert process.shard.is_led
    assert process.shard.transactions.to_keep() == []


def test_a_takeover_reads_past_markers(new: Callable[[], Process], log: OneLog) -> None:
    marker_in(log)
    process = new()
    process.shard.want()
    assert process.shard.is_led
    marker_in(log)
    process.shard.poll()
    assert [found.offset for found in process.ended] == [2]
