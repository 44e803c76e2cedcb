"""A transactional id and its transaction as one frozen value, and every value that may follow it.

The producer epoch fences: every broker refuses a request with an older epoch. The epoch grows by one with
every InitProducerId, with every transaction of a client that knows KIP-890, and when a producer is fenced.
Before it overflows, a new producer id takes over, with epoch 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kshim.coordination.transactions.states import IDLE, State

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
GREATEST_EPOCH = 2**15 - 1
LAST_PRODUCER_EPOCH = GREATEST_EPOCH - 1
"""The last epoch that a client ever gets. The coordinator keeps the one above it, so that it can
still fence.
"""

SERVER_TRANSACTION_VERSION = 2
"""The level of the feature transaction.version with which the coordinator itself ends transactions."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of one transactional id, its transaction included."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change of state."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that takes over when the markers are written, or -1."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that the same producer had before this one, or -1. It is lost at a restart, as in Kafka."""
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int
    transaction_version: int = 0
    """2 if the client gets a new epoch for each transaction (KIP-890), else 0."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if no epoch of this producer id is left for a client."""
        return self.producer_epoch >= LAST_PRODUCER_EPOCH

    def is_timed_out(self, now_ms: int) -> bool:
        """True if the transaction has been open for longer than its timeout."""
        return self.state is State.ONGOING and self.start_ms + self.timeout_ms < now_ms

    # ---- what may come next

    def with_next_epoch(self, timeout_ms: int, last_producer_epoch: int, now_ms: int) -> Transaction:
        """The value after a producer begins; its epoch fences its predecessor."""
        return self._empty(self.producer_id, self.producer_epoch + 1, last_producer_epoch, timeout_ms, now_ms)

    def with_same_epoch(self, timeout_ms: int, now_ms: int) -> Transaction:
        """The value after a producer asks again because an answer was lost."""
        return self._empty(
            self.producer_id, self.producer_epoch, self.last_producer_epoch, timeout_ms, now_ms
        )

    def with_producer_id(
        self, producer_id: int, timeout_ms: int, last_producer_epoch: int, now_ms: int
    ) -> Transaction:
        """The value after a producer begins with a new producer id, because the epochs have run out."""
        return self._empty(producer_id, 0, last_producer_epoch, timeout_ms, now_ms)

    def _empty(
        self, producer_id: int, epoch: int, last_producer_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        return replace(
            self,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            state=State.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], transaction_version: int, now_ms: int
    ) -> Transaction:
        """The value with these partitions added; the first ones begin the transaction."""
        return replace(
            self,
            previous_producer_id=self.producer_id,
            state=State.ONGOING,
            partitions=self.partitions | partitions,
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            last_update_ms=now_ms,
            transaction_version=transaction_version,
        )

    def ending(
        self, state: State, transaction_version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transaction:
        """The value after the outcome is decided: PrepareCommit or PrepareAbort.

        With version 2 the markers carry the next epoch, which the producer uses from then on. After fencing,
        a transaction may have the greatest epoch already; then it ends as with version 0.
        """
        bumps = transaction_version >= 2 and self.producer_epoch < GREATEST_EPOCH
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=self.producer_epoch + 1 if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            state=state,
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            last_update_ms=now_ms,
            transaction_version=transaction_version if bumps else 0,
        )

    def fenced(self, now_ms: int) -> Transaction:
        """The value after the producer is fenced: the transaction is aborted under the next epoch."""
        return self.ending(State.PREPARE_ABORT, SERVER_TRANSACTION_VERSION, now_ms)

    def completed(self, now_ms: int) -> Transaction:
        """The value after every marker is written. If the epochs have run out, the next producer id takes
        over.
        """
        takes_over = self.next_producer_id != NO_PRODUCER_ID
        committed = self.state is State.PREPARE_COMMIT
        return replace(
            self,
            producer_id=self.next_producer_id if takes_over else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if takes_over else self.producer_epoch,
            state=State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )


def new_transaction(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """The value of an unused transactional id; it has no epoch until its first producer begins."""
    return Transaction(producer_id=producer_id, timeout_ms=timeout_ms, last_update_ms=now_ms)
