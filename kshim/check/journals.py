"""Checks that the coordinators could load the records they wrote to Kafka's internal topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from kshim.check.consumer_groups import ConsumerGroupsCheck
from kshim.cluster.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from schemas.internal_topics import group_metadata_log, transaction_log
from schemas.message import MalformedMessage
from schemas.records.batch import Record


class Journal(Protocol):
    """The records of one partition of an internal topic, in their order."""

    def read(self, key: bytes, value: bytes | None) -> None:
        """Check the next record. Raises MalformedMessage and ValueError if it cannot be loaded."""

    def faults(self) -> Iterator[str]:
        """Yield the faults of the state to which all records lead."""


class _Groups:
    """A partition of __consumer_offsets."""

    def __init__(self) -> None:
        self._consumer_groups = ConsumerGroupsCheck()

    def read(self, key: bytes, value: bytes | None) -> None:
        decoded = group_metadata_log.decode_key(key)
        if isinstance(decoded, group_metadata_log.UnknownKey):
            return
        read = group_metadata_log.decode_value(decoded, value)
        if not isinstance(decoded, group_metadata_log.OffsetCommitKey):
            self._consumer_groups.replay(decoded, read)

    def faults(self) -> Iterator[str]:
        return self._consumer_groups.faults()


class _Transactions:
    """A partition of __transaction_state."""

    def read(self, key: bytes, value: bytes | None) -> None:
        if transaction_log.decode_key(key) is not None:
            transaction_log.decode_value(value)

    def faults(self) -> Iterator[str]:
        return iter(())


JOURNALS: Mapping[str, type[Journal]] = {
    GROUP_METADATA_TOPIC: _Groups,
    TRANSACTION_STATE_TOPIC: _Transactions,
}


def fault_in_record(journal: Journal, record: Record) -> str:
    """Return why the coordinator could not load a record; "" if it could."""
    if record.key is None:
        return "the record has no key"
    try:
        journal.read(record.key, record.value)
    except (MalformedMessage, ValueError) as error:
        return f"the record cannot be read: {error}"
    return ""
