"""The rules for producers with an id: which batch is new, which was here before, which may not be appended.

Pure (KIP-98, KIP-360, KIP-890). A producer numbers the records it sends to a partition; its last five batches
are remembered, because a client has at most five on their way. Its records are transactional or not; they may
begin a transaction only where the transaction coordinator has said that the partition is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kshim.storage.producers import NO_TRANSACTION, ProducerState, SentBatch
from schemas.error_code import ErrorCode
from schemas.records.batch import RecordBatchHeader
from schemas.records.end_txn_marker import EndTxnMarker

NO_EPOCH = -1
STRICT_VERSION = 2
"""From this transaction.version on each transaction of a producer has an epoch of its own."""
_SEQUENCES = 1 << 31  # the number after 2**31 - 1 is 0


@dataclass(slots=True, eq=False)
class Verification:
    """That the coordinator was asked whether a partition is part of a producer's transaction.

    It is known from the question until a record of the transaction, or its end, is in the partition: an
    answer from before the end says nothing of a transaction that has begun since. adds: the question was to
    add the partition; such a client begins each epoch with sequence 0. lowest_sequence: of all asked for.
    """

    producer_epoch: int
    lowest_sequence: int
    adds: bool
    asked_at_ms: int

    def ask_again(self, header: RecordBatchHeader) -> None:
        if header.producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, header.base_sequence)


def check(
    producer: ProducerState | None,
    header: RecordBatchHeader,
    verification: Verification | None = None,
    *,
    is_verified: bool = True,
) -> SentBatch | ErrorCode:
    """What a client's batch is: one that was here before, NONE for a new one, or the error that refuses it.

    verification: what is known of the producer in this partition; is_verified: it is of this very batch. The
    first batch of an unknown producer is new, whatever its sequence: it may have been forgotten.
    """
    if producer is not None:
        repeated = _repeated(producer, header)
        if repeated is not None:
            return repeated
        if header.producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
    if header.is_transactional and not is_verified and not in_transaction(producer, header.producer_epoch):
        return ErrorCode.INVALID_TXN_STATE
    if not _is_next(producer, header, verification):
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if producer is not None and producer.transaction_start != NO_TRANSACTION and not header.is_transactional:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NONE


def in_transaction(producer: ProducerState | None, producer_epoch: int) -> bool:
    """Whether it has a transaction open in the partition, in this epoch."""
    return (
        producer is not None
        and producer.transaction_start != NO_TRANSACTION
        and producer.producer_epoch == producer_epoch
    )


def _repeated(producer: ProducerState, header: RecordBatchHeader) -> SentBatch | None:
    if header.producer_epoch == producer.producer_epoch:
        for sent in producer.batches:
            if sent.base_sequence == header.base_sequence and sent.last_sequence == header.last_sequence:
                return sent
    return None


def _is_next(
    producer: ProducerState | None, header: RecordBatchHeader, verification: Verification | None
) -> bool:
    sequence = header.base_sequence
    if verification is not None:
        has_sent = producer is not None and producer.batches
        if verification.adds and sequence != 0 and not has_sent:
            return False
        if sequence > verification.lowest_sequence:
            return False
    if producer is None or producer.producer_epoch == NO_EPOCH:
        return True
    if producer.producer_epoch != header.producer_epoch:
        return sequence == 0
    return sequence == (producer.last_sequence + 1) % _SEQUENCES


def check_marker(
    producer: ProducerState | None, marker: EndTxnMarker, transaction_version: int = 0
) -> ErrorCode:
    """Whether a marker may be appended: NONE, INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.

    transaction_version: the one that the transaction was made with. From 2 on its end has a later epoch than
    its records, so a marker that comes late cannot end the next one; but one may come twice. Of a producer id
    below zero nothing is known, and who is not known has the epochs -1.
    """
    if marker.producer_id < 0:
        return ErrorCode.NONE
    if producer is None:
        if marker.producer_epoch < -1:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        is_fenced = marker.coordinator_epoch < -1
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED if is_fenced else ErrorCode.NONE
    ended = producer.transaction_start == NO_TRANSACTION
    is_late = marker.producer_epoch == producer.producer_epoch and transaction_version >= STRICT_VERSION
    if marker.producer_epoch < producer.producer_epoch or (is_late and not ended):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < producer.coordinator_epoch:
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED
    return ErrorCode.NONE
