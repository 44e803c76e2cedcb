"""Fencing: once a later epoch is known, nobody may write with an earlier one.

A producer that was replaced (KIP-98), or whose transaction has ended with a later epoch (KIP-890), must not
commit any more. A transaction coordinator that was replaced must not end transactions any more.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.error_code import ErrorCode
from schemas.records.end_txn_marker import EndTxnMarker

MOST_PRODUCERS = 5_000
"""How many producers a shard remembers. Beyond that, the one that has been silent for longest is forgotten.
"""


class ProducerIdAndEpoch(NamedTuple):
    """The producer of records that are part of a transaction."""

    producer_id: int
    producer_epoch: int


class Epochs(NamedTuple):
    """The latest epochs that a shard has seen with one producer id."""

    producer_epoch: int
    coordinator_epoch: int = -1


class Fencing:
    """The latest epochs of the producers that have written to a shard."""

    __slots__ = ("_epochs",)

    def __init__(self) -> None:
        self._epochs: dict[int, Epochs] = {}

    def check(self, producer: ProducerIdAndEpoch) -> ErrorCode:
        """The error for a producer that commits offsets, or NONE."""
        known = self._epochs.get(producer.producer_id)
        is_fenced = known is not None and producer.producer_epoch < known.producer_epoch
        return ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else ErrorCode.NONE

    def check_marker(self, marker: EndTxnMarker) -> ErrorCode:
        """The error for a marker that ends a transaction, or NONE."""
        error = self.check(ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch))
        if error is not ErrorCode.NONE:
            return error
        known = self._epochs.get(marker.producer_id)
        is_fenced = known is not None and marker.coordinator_epoch < known.coordinator_epoch
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED if is_fenced else ErrorCode.NONE

    def wrote(self, producer: ProducerIdAndEpoch) -> None:
        """Note that a producer has written records of a transaction."""
        known = self._epochs.pop(producer.producer_id, None)
        coordinator_epoch = -1 if known is None else known.coordinator_epoch
        self._remember(producer.producer_id, Epochs(producer.producer_epoch, coordinator_epoch))

    def ended(self, marker: EndTxnMarker) -> None:
        """Note that a marker has ended a transaction."""
        self._epochs.pop(marker.producer_id, None)
        self._remember(marker.producer_id, Epochs(marker.producer_epoch, marker.coordinator_epoch))

    def _remember(self, producer_id: int, epochs: Epochs) -> None:
        self._epochs[producer_id] = epochs
        if len(self._epochs) > MOST_PRODUCERS:
            del self._epochs[next(iter(self._epochs))]
