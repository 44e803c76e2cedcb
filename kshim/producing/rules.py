"""The rules for producers with an id: which batch is new, which is a repetition, which is refused.

Pure functions (KIP-98, KIP-360, KIP-890). A producer numbers the records that it sends to a partition. Its
last five batches are remembered, because a client has at most five in flight. It may begin a transaction in a
partition only after the transaction coordinator has confirmed that the transaction has the partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from kshim.storage.producers import NO_TRANSACTION, ProducerState, SentBatch
from schemas.error_code import ErrorCode
from schemas.records.batch import RecordBatchHeader
from schemas.records.end_txn_marker import EndTxnMarker

NO_EPOCH = -1
STRICT_VERSION = 2
"""From this transaction.version on, each transaction of a producer has a new epoch."""
_SEQUENCES = 1 << 31  # the number after 2**31 - 1 is 0


@dataclass(slots=True, eq=False)
class Verification:
    """A question to the coordinator: is the partition part of the producer's transaction?

    It is kept until a record of the transaction, or the transaction's end, is in the partition. After the end
    its answer is void, as it says nothing about the next transaction.
    """

    producer_epoch: int
    lowest_sequence: int
    """The lowest base sequence of the batches that the question was asked for."""
    adds: bool
    """True if the question was to add the partition. Clients that leave this to the broker begin each epoch
    with sequence 0.
    """
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
    """Check a client's batch. Return NONE if it is new, the stored batch if it repeats one, or an error.

    verification: the question kept for this producer and partition. is_verified: True if its answer has
    allowed this very batch. The first batch of an unknown producer is new, whatever its sequence, because the
    producer may have been forgotten.
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
    """True if the producer has an open transaction in the partition, in this epoch."""
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
    """Check a marker. Return NONE, INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.

    transaction_version: the transaction's. From 2 on, the marker has a later epoch than the transaction's
    records, so a late marker cannot end the next transaction; but a marker may come twice. An unknown
    producer counts as having the epochs -1. Producer ids below zero are not checked.
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
