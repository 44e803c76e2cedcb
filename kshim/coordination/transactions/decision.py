"""The parts of a transaction coordinator's decisions: records, markers to write, reports for the log."""

from __future__ import annotations

from typing import NamedTuple

from kshim.coordination.transactions.transaction import Transaction


class TransactionRecord(NamedTuple):
    """One record of `__transaction_state`; a transaction of None is a tombstone."""

    transactional_id: str
    transaction: Transaction | None


class Ending(NamedTuple):
    """A transaction whose outcome is durable; each of its partitions has to get its marker."""

    transactional_id: str
    transaction: Transaction


class TimedOut(NamedTuple):
    """A report: a transaction was open for longer than its timeout."""

    transactional_id: str

    def __str__(self) -> str:
        return f"transactional id {self.transactional_id}: aborted, its time is up"
