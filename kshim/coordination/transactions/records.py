"""Encodes a transaction as a record of `__transaction_state`, and decodes it.

Unlike Kafka 4.2, this also stores the next producer id. The client gets that id before the markers are
written, and must not be refused with it after a crash.
"""

from __future__ import annotations

from kshim.coordination.transactions.decision import TransactionRecord
from kshim.coordination.transactions.requests import sorted_by_topic
from kshim.coordination.transactions.states import State
from kshim.coordination.transactions.transaction import NO_PRODUCER_ID, Transaction
from schemas.internal_topics.transaction_log import (
    PartitionsSchema,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from schemas.message import MalformedMessage


def encode_record(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """The key and value of a record."""
    transactional_id, transaction = record
    value = None if transaction is None else encode_value(_stored(transaction))
    return encode_key(transactional_id), value


def decode_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """The record; None if its key is of another kind. Raises MalformedMessage."""
    transactional_id = decode_key(key)
    if transactional_id is None:
        return None
    stored = decode_value(value)
    return TransactionRecord(transactional_id, None if stored is None else _loaded(stored))


def _stored(it: Transaction) -> TransactionLogValue:
    partitions = tuple(
        PartitionsSchema(topic=topic, partition_ids=tuple(indexes))
        for topic, indexes in sorted_by_topic(it.partitions).items()
    )
    changed = it.previous_producer_id != it.producer_id
    return TransactionLogValue(
        producer_id=it.producer_id,
        previous_producer_id=it.previous_producer_id if changed else NO_PRODUCER_ID,
        next_producer_id=it.next_producer_id,
        producer_epoch=it.producer_epoch,
        transaction_timeout_ms=it.timeout_ms,
        transaction_status=it.state,
        transaction_partitions=None if it.state is State.EMPTY else partitions,
        transaction_last_update_timestamp_ms=it.last_update_ms,
        transaction_start_timestamp_ms=it.start_ms,
        client_transaction_version=it.transaction_version,
    )


def _loaded(stored: TransactionLogValue) -> Transaction:
    try:
        state = State(stored.transaction_status)
    except ValueError:
        fault = f"{stored.transaction_status} is no state of a transaction"
        raise MalformedMessage(fault, api="TransactionLogValue", version=1) from None
    changed = stored.previous_producer_id != NO_PRODUCER_ID
    return Transaction(
        producer_id=stored.producer_id,
        previous_producer_id=stored.previous_producer_id if changed else stored.producer_id,
        next_producer_id=stored.next_producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (schema.topic, index)
            for schema in stored.transaction_partitions or ()
            for index in schema.partition_ids
        ),
        start_ms=stored.transaction_start_timestamp_ms,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        transaction_version=stored.client_transaction_version,
    )
