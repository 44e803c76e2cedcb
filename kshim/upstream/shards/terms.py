"""The terms in which a shard is led: the producer ids and epochs under which its leaders append.

Kafka refuses appends under an epoch once it has seen a later one of the same producer id. Of all processes
that begin an epoch, it takes one first batch. So a term belongs to the process that has appended its first
batch: docs/decisions/024. No server allocates the ids: they are ids that Kafka never gives. When the epochs
of an id are used up, the last one is claimed but not used: its owner goes on under the next id.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_PRODUCER_ID = 1 << 62
"""Kafka gives ids from 0 on, in blocks of 1000."""
LAST_EPOCH = 32_767
MOST_SKIPPED_IDS = 1024
"""A term whose id is further above the newest one is no leader's. Between the two, the shard would have been
taken over 33 million times without a trace. Without this limit, one forged record could use up all ids.
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
        """The term under which the owner of this term appends."""
        return Term(self.producer_id + 1, 0) if self.is_last_of_id else self

    @property
    def next_sequence(self) -> int:
        """The sequence of the first batch after the claim, which is one record."""
        return 0 if self.is_last_of_id else 1

    @property
    def next(self) -> Term:
        """The term to claim while this is the newest one in the log. It fences `led`."""
        return self.led._replace(producer_epoch=self.led.producer_epoch + 1)


FIRST_TERM = Term(FIRST_PRODUCER_ID, 0)
"""The term to claim in an empty log."""


def term_of(producer_id: int, producer_epoch: int) -> Term | None:
    """Return the term of a batch; None if the producer id is not a leader's."""
    return Term(producer_id, producer_epoch) if producer_id >= FIRST_PRODUCER_ID else None


class Terms:
    """The terms in a log, in the log's order."""

    def __init__(self, newest: Term | None = None) -> None:
        self.newest = newest

    def takes(self, term: Term | None) -> bool:
        """Note the term of the next batch; False if the batch cannot be a leader's.

        Kafka refuses an earlier term once it has seen a later one, and leaders count terms up one by one.
        """
        if term is None:
            return False
        least = self.newest or FIRST_TERM
        if term < least or term.producer_id - least.producer_id > MOST_SKIPPED_IDS:
            return False
        self.newest = term
        return True
