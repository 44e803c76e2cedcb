"""What the transaction coordinator decides, as values: records to commit, markers to write, and replies."""

from __future__ import annotations

from typing import Any, NamedTuple

from kshim.transactions.transaction import Transaction


class Record(NamedTuple):
    """One record of `__transaction_state`; None is a tombstone."""

    transactional_id: str
    transaction: Transaction | None


class Reply(NamedTuple):
    """A response message and the token of the request that it answers."""

    token: int
    response: Any


class Ending(NamedTuple):
    """A transaction whose outcome is durable: every partition of it is to get its marker."""

    transactional_id: str
    transaction: Transaction


class Decision(NamedTuple):
    """Replies leave, and markers are written, once the records and all earlier ones are durable."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    endings: tuple[Ending, ...] = ()


NOTHING = Decision()
