"""Appends each batch of a producer with an id once: a batch that is sent again is not written again.

The log stores the state of producers, as durably as their batches. This module keeps only what the process
may lose: requests that wait until a batch is durable, batches that could not be stored, and verifications.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kshim.producing.rules import Verification, check, check_marker, in_transaction
from kshim.storage.interfaces import Appended, Log
from kshim.storage.producers import SentBatch
from kshim.turns.promise import Promise
from schemas.error_code import ErrorCode
from schemas.records.batch import RecordBatchHeader
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker

if TYPE_CHECKING:
    from kshim.configs.config import Config

T = TypeVar("T")
BatchName = tuple[int, int, int, int]
"""(partition_no, producer_id, producer_epoch, base_sequence), unique among the batches under way."""


class ProducerAppends:
    """Appends producers' batches to one log, which all brokers of the process share."""

    def __init__(self, log: Log, config: Config) -> None:
        self._log = log
        self._expiration_ms = config.producer_id_expiration_ms
        self._check_interval_ms = config.producer_id_expiration_check_interval_ms
        self._check_at_ms = 0
        self._in_flight: dict[BatchName, list[Deferred[Appended]]] = {}
        self._lost: dict[tuple[int, int], RecordBatchHeader] = {}
        self._verifications: dict[tuple[int, int], Verification] = {}
        self._turns: dict[int, deque[Promise[None]]] = {}
        """By producer id: the calls that wait until another one for the producer is done."""

    def append(
        self,
        partition_no: int,
        header: RecordBatchHeader,
        append: Callable[[], Deferred[Appended]],
        *,
        now_ms: int,
        verification: Verification | None = None,
    ) -> Deferred[Appended] | ErrorCode:
        """Call `append()` if the batch is new. If it repeats a batch, answer with the original's offset, once
        the original is durable.

        verification: the one that allowed a transactional batch; None if none was needed. Returns an
        ErrorCode if sequence, epoch or transaction are wrong; see `rules.check`. The Deferred errbacks
        StorageError. For a repetition, the log append time in the answer is the batch's timestamp, as in
        Kafka.
        """
        self._maybe_forget(now_ms)
        known = self._verifications.get((partition_no, header.producer_id)) if self._verifications else None
        producer = self._log.producers(partition_no).get(header.producer_id)
        found = check(producer, header, known, is_verified=known is not None and known is verification)
        if self._lost and found is ErrorCode.NONE:
            found = self._check_lost(partition_no, header)
        if isinstance(found, SentBatch):
            return self._repeat(partition_no, header, found)
        if found is not ErrorCode.NONE:
            return found
        if known is not None and header.is_transactional:
            del self._verifications[partition_no, header.producer_id]
        name = partition_no, header.producer_id, header.producer_epoch, header.base_sequence
        self._in_flight.setdefault(name, [])
        return append().addBoth(self._appended, name, header)

    def append_marker(
        self,
        partition_no: int,
        marker: EndTxnMarker,
        *,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Deferred[Appended] | ErrorCode:
        """Append the end of a transaction.

        Returns INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED if the marker comes too late. The
        Deferred errbacks StorageError.
        """
        producer = self._log.producers(partition_no).get(marker.producer_id)
        fault = check_marker(producer, marker, transaction_version)
        if fault is not ErrorCode.NONE:
            return fault
        self._verifications.pop((partition_no, marker.producer_id), None)
        return self._log.append(partition_no, encode_marker(marker), leader_epoch=leader_epoch, now_ms=now_ms)

    # ---- verification

    def verification(
        self, partition_no: int, header: RecordBatchHeader, *, adds: bool, now_ms: int
    ) -> Verification | ErrorCode:
        """Decide whether the coordinator must be asked before a transactional batch is appended.

        NONE: no, the transaction is open in this partition. A Verification: yes. INVALID_PRODUCER_EPOCH: the
        batch is refused.
        """
        producer = self._log.producers(partition_no).get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if in_transaction(producer, header.producer_epoch):
            return ErrorCode.NONE
        known = self._verifications.get((partition_no, header.producer_id))
        if known is None:
            known = Verification(header.producer_epoch, header.base_sequence, adds, now_ms)
            self._verifications[partition_no, header.producer_id] = known
        else:
            known.ask_again(header)
        return known

    async def in_turn(self, producer_id: int, function: Callable[[], Awaitable[T]]) -> T:
        """Await `function()` once all earlier calls for the producer are done.

        Requests are read ahead, so a producer's second request may arrive before the coordinator has answered
        for the first one. Its records must be appended after those of the first.
        """
        behind = self._turns.get(producer_id)
        if behind is None:
            behind = self._turns[producer_id] = deque()
        else:
            turn: Promise[None] = Promise()
            behind.append(turn)
            await turn
        try:
            return await function()
        finally:
            if behind:
                behind.popleft().answer_alone(None)
            else:
                del self._turns[producer_id]

    # ---- batches under way

    def _repeat(self, partition_no: int, header: RecordBatchHeader, sent: SentBatch) -> Deferred[Appended]:
        log_start_offset = self._log.offsets(partition_no).log_start_offset
        answer = Appended(sent.base_offset, log_start_offset, sent.timestamp_ms)
        name = partition_no, header.producer_id, header.producer_epoch, header.base_sequence
        waiting = self._in_flight.get(name)
        if waiting is None:
            return succeed(answer)
        original: Deferred[Appended] = Deferred()
        waiting.append(original)
        return original.addCallback(lambda _: answer)

    def _appended(
        self, result: Appended | Failure, name: BatchName, header: RecordBatchHeader
    ) -> Appended | Failure:
        if isinstance(result, Failure):
            self._lost.setdefault((name[0], header.producer_id), header)
        for original in self._in_flight.pop(name, ()):
            original.callback(result)
        return result

    def _check_lost(self, partition_no: int, header: RecordBatchHeader) -> ErrorCode:
        """Refuse the batches that follow a lost one, until the lost one is sent again. Lost: it was not
        stored.

        `rules.check` does not refuse them: it accepts any sequence in an unknown producer's first batch.
        """
        lost = self._lost.get((partition_no, header.producer_id))
        if lost is None:
            return ErrorCode.NONE
        if lost.producer_epoch == header.producer_epoch and lost.base_sequence != header.base_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        del self._lost[partition_no, header.producer_id]
        return ErrorCode.NONE

    def _maybe_forget(self, now_ms: int) -> None:
        if now_ms < self._check_at_ms:
            return
        self._check_at_ms = now_ms + self._check_interval_ms
        since_ms = now_ms - self._expiration_ms
        self._log.forget_producers(since_ms)
        self._lost.clear()
        asked = self._verifications
        self._verifications = {key: known for key, known in asked.items() if known.asked_at_ms > since_ms}
