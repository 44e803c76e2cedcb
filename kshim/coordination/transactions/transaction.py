"""A transactional id and its transaction as one frozen value, and every value that may come after it.

The producer epoch is what fences: whoever comes with an older one is refused everywhere. It is one higher
after every InitProducerId, after every transaction of a client that knows KIP-890, and when a transaction is
taken from its producer. Before it overflows a new producer id takes over, with epoch 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kshim.coordination.transactions.states import IDLE, State

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
LAST_PRODUCER_EPOCH = 2**15 - 2
"""The last one that a client is ever told: one more is kept for the coordinator, so that it can fence."""

SERVER_TRANSACTION_VERSION = 2
"""The level of the feature transaction.version, by which the coordinator ends transactions itself."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is known of one transactional id.

    previous_producer_id: the one before the last change of state. next_producer_id: the one that takes over
    when the markers are written, or -1. last_producer_epoch: the epoch that this same producer had before, or
    -1; alone among all this it does not survive a restart, as in Kafka.
    transaction_version: 2 where the client gets a new epoch for each transaction (KIP-890), else 0.
    """

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int
    transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer cannot be given another epoch of this producer id."""
        return self.producer_epoch >= LAST_PRODUCER_EPOCH

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the producer has not ended its transaction in the time that it gave itself."""
        return self.state is State.ONGOING and self.start_ms + self.timeout_ms < now_ms

    # ---- what may come next

    def with_next_epoch(self, timeout_ms: int, last_producer_epoch: int, now_ms: int) -> Transaction:
        """A producer begins, with an epoch that fences the one before."""
        return self._empty(self.producer_id, self.producer_epoch + 1, last_producer_epoch, timeout_ms, now_ms)

    def with_same_epoch(self, timeout_ms: int, now_ms: int) -> Transaction:
        """A producer that was not answered asks again."""
        return self._empty(
            self.producer_id, self.producer_epoch, self.last_producer_epoch, timeout_ms, now_ms
        )

    def with_producer_id(
        self, producer_id: int, timeout_ms: int, last_producer_epoch: int, now_ms: int
    ) -> Transaction:
        """A producer begins with another producer id: there is no epoch left."""
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
        """The transaction may write to these partitions too; with the first ones it begins."""
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
        """The outcome is decided: PrepareCommit or PrepareAbort.

        With version 2 the markers carry the next epoch, which is the producer's from then on.
        """
        bumps = transaction_version >= 2
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=self.producer_epoch + 1 if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            state=state,
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            last_update_ms=now_ms,
            transaction_version=transaction_version,
        )

    def fenced(self, now_ms: int) -> Transaction:
        """The transaction is taken from its producer and aborted."""
        return self.ending(State.PREPARE_ABORT, SERVER_TRANSACTION_VERSION, now_ms)

    def completed(self, now_ms: int) -> Transaction:
        """Every marker is written. Where the epochs have run out the next producer id takes over."""
        takes_over = self.transaction_version >= 2 and self.next_producer_id != NO_PRODUCER_ID
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
    """A transactional id that nobody has used yet: it has no epoch before the first producer begins."""
    return Transaction(producer_id=producer_id, timeout_ms=timeout_ms, last_update_ms=now_ms)
