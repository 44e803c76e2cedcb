"""Checks that the coordinators could load the records they wrote to Kafka's internal topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kshim.cluster.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from schemas.internal_topics import group_metadata_log, transaction_log
from schemas.message import MalformedMessage
from schemas.records.batch import Record

Decode = Callable[[Record], object]


def _group_record(record: Record) -> object:
    assert record.key is not None
    key = group_metadata_log.decode_key(record.key)
    if isinstance(key, group_metadata_log.UnknownKey):
        return None
    return group_metadata_log.decode_value(key, record.value)


def _transaction_record(record: Record) -> object:
    assert record.key is not None
    if transaction_log.decode_key(record.key) is None:
        return None
    return transaction_log.decode_value(record.value)


JOURNALS: Mapping[str, Decode] = {
    GROUP_METADATA_TOPIC: _group_record,
    TRANSACTION_STATE_TOPIC: _transaction_record,
}


def fault_in_record(decode: Decode, record: Record) -> str:
    """Return why the coordinator could not load a record; "" if it could."""
    if record.key is None:
        return "the record has no key"
    try:
        decode(record)
    except (MalformedMessage, ValueError) as error:
        return f"the record cannot be read: {error}"
    return ""
