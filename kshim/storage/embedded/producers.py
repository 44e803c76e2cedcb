"""Producers and aborted transactions in LMDB, written in the transaction that makes their batches durable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kshim.storage.embedded.environment import Environment, ReadTransaction, WriteTransaction
from kshim.storage.embedded.rows import ABORTED, KEY, MAX_OFFSET
from kshim.storage.producers import (
    Aborted,
    Changes,
    Producers,
    ProducerState,
    decode_producer,
    encode_producer,
)

if TYPE_CHECKING:
    import lmdb

STEP_ROWS = 1000
"""Most rows that one transaction frees."""


def put_changes(
    environment: Environment, transaction: WriteTransaction, partition_no: int, changes: Sequence[Changes]
) -> None:
    """Write the changes that the batches of a partition make. changes: in the order of the batches."""
    states: dict[int, ProducerState | None] = {}
    for change in changes:
        states.update(change.producers)
        for producer_id, first_offset, last_offset, last_stable_offset in change.aborted:
            value = ABORTED.pack(producer_id, first_offset, last_stable_offset)
            transaction.put(KEY.pack(partition_no, last_offset), value, db=environment.aborted)
    for producer_id, state in states.items():
        key = KEY.pack(partition_no, producer_id)
        if state is None:
            transaction.delete(key, db=environment.producers)
        else:
            transaction.put(key, encode_producer(state), db=environment.producers)


def load_producers(
    environment: Environment,
    transaction: ReadTransaction | WriteTransaction,
    partition_no: int,
    later: Iterable[Changes] = (),
) -> Producers:
    """The stored producers after the changes that LMDB may lack."""
    rows = _rows(transaction, environment.producers, partition_no, 0)
    producers: dict[int, ProducerState | None] = {
        producer_id: decode_producer(value) for producer_id, value in rows
    }
    for changes in later:
        producers.update(changes.producers)
    return Producers((producer_id, state) for producer_id, state in producers.items() if state is not None)


def load_aborted(
    environment: Environment,
    transaction: ReadTransaction | WriteTransaction,
    partition_no: int,
    start: int = 0,
) -> Iterator[Aborted]:
    """The aborted transactions whose markers are at `start` or later, in the order of the markers."""
    for last_offset, value in _rows(transaction, environment.aborted, partition_no, start):
        producer_id, first_offset, last_stable_offset = ABORTED.unpack(value)
        yield Aborted(producer_id, first_offset, last_offset, last_stable_offset)


def last_aborted_offset(environment: Environment, transaction: ReadTransaction, partition_no: int) -> int:
    """The offset of a partition's last abort marker; -1 if there is none."""
    cursor = transaction.cursor(environment.aborted)
    found = cursor.set_range(KEY.pack(partition_no, MAX_OFFSET))
    if not (cursor.prev() if found else cursor.last()):
        return -1
    found_no, last_offset = KEY.unpack(cursor.key())
    return int(last_offset) if found_no == partition_no else -1


def forget_aborted(
    environment: Environment, transaction: WriteTransaction, partition_no: int, gone: Iterable[Aborted]
) -> None:
    for aborted in gone:
        transaction.delete(KEY.pack(partition_no, aborted.last_offset), db=environment.aborted)


def free_producers(environment: Environment, transaction: WriteTransaction, partition_no: int) -> int:
    """Delete some rows of a partition's producers and aborted transactions. Returns how many, at most
    STEP_ROWS.
    """
    freed = _free(transaction, environment.producers, partition_no, MAX_OFFSET)
    return freed or free_aborted(environment, transaction, partition_no, MAX_OFFSET)


def free_aborted(environment: Environment, transaction: WriteTransaction, partition_no: int, end: int) -> int:
    """Delete aborted transactions that end below offset `end`. Returns how many, at most STEP_ROWS."""
    return _free(transaction, environment.aborted, partition_no, end)


def _rows(
    transaction: ReadTransaction | WriteTransaction, database: lmdb._Database, partition_no: int, start: int
) -> Iterator[tuple[int, bytes | memoryview]]:
    cursor = transaction.cursor(database)
    if not cursor.set_range(KEY.pack(partition_no, start)):
        return
    for key, value in cursor.iternext():
        found_no, number = KEY.unpack(key)
        if found_no != partition_no:
            return
        yield number, value


def _free(transaction: WriteTransaction, database: lmdb._Database, partition_no: int, end: int) -> int:
    cursor = transaction.cursor(database)
    cursor.set_range(KEY.pack(partition_no, 0))
    freed = 0
    while freed < STEP_ROWS and (key := cursor.key()):
        found_no, number = KEY.unpack(key)
        if found_no != partition_no or number >= end:
            break
        cursor.delete()
        freed += 1
    return freed
