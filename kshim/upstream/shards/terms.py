"""The terms in which a shard is led: producer ids and epochs, under which the leaders of a shard append.

Kafka lets nobody append under an epoch once it has seen a later one of the same producer id, and of all who
begin an epoch it takes one first batch. So a term belongs to whoever has appended its first batch:
docs/decisions/024. Nobody has to be asked for an id; it must only be one that Kafka never gives. When the
epochs of an id are used up, the last one is claimed, but not used: its owner goes on under the next id.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_PRODUCER_ID = 1 << 62
"""Kafka gives ids from 0 on, in blocks of 1000."""
LAST_EPOCH = 32_767
MOST_SKIPPED_IDS = 1024
"""A term whose id is further above the newest one is nobody's: between them, a shard would have been taken
over 33 million times, and nothing of that be left. Without this limit one record could use up all ids.
"""


class Term(NamedTuple):
    """The producer id and epoch of a batch. A later term is greater."""

    producer_id: int
    producer_epoch: int

    @property
    def is_last_of_id(self) -> bool:
        return self.producer_epoch == LAST_EPOCH

    @property
    def led(self) -> Term:
        """The term under which whoever has claimed this one appends."""
        return Term(self.producer_id + 1, 0) if self.is_last_of_id else self

    @property
    def next_sequence(self) -> int:
        """The sequence of the first batch behind the claim, of one record."""
        return 0 if self.is_last_of_id else 1

    @property
    def next(self) -> Term:
        """The term to be claimed while this is the newest with a batch. It fences `led`."""
        return self.led._replace(producer_epoch=self.led.producer_epoch + 1)


FIRST_TERM = Term(FIRST_PRODUCER_ID, 0)
"""The term to be claimed in an empty log."""


def term_of(producer_id: int, producer_epoch: int) -> Term | None:
    """The term of a batch; None for a batch of anybody else."""
    return Term(producer_id, producer_epoch) if producer_id >= FIRST_PRODUCER_ID else None


class Terms:
    """The terms in a log, in its order."""

    def __init__(self, newest: Term | None = None) -> None:
        self.newest = newest

    def takes(self, term: Term | None) -> bool:
        """Note the term of the next batch; False if the batch can be no leader's.

        Kafka refuses an earlier term once it has seen a later one, and leaders count terms up one by one.
        """
        if term is None:
            return False
        least = self.newest or FIRST_TERM
        if term < least or term.producer_id - least.producer_id > MOST_SKIPPED_IDS:
            return False
        self.newest = term
        return True
