"""What the transaction coordinator decides about: records, markers to write, and what it tells the log."""

from __future__ import annotations

from typing import NamedTuple

from kshim.coordination.transactions.transaction import Transaction


class TransactionRecord(NamedTuple):
    """One record of `__transaction_state`; None is a tombstone."""

    transactional_id: str
    transaction: Transaction | None


class Ending(NamedTuple):
    """A transaction whose outcome is durable: every partition of it is to get its marker."""

    transactional_id: str
    transaction: Transaction


class TimedOut(NamedTuple):
    """A report: a transaction that was open for longer than its producer wanted."""

    transactional_id: str

    def __str__(self) -> str:
        return f"transactional id {self.transactional_id}: aborted, its time is up"
