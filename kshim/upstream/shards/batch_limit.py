"""How large a batch of the groups' topic may be: the topic's max.message.bytes, as far as kshim knows it.

Kafka refuses a larger batch whole. So a leader cuts what it appends at once into batches that are small
enough. A single record cannot be cut: the coordinator refuses a request that would need a larger one.
"""

from __future__ import annotations

from typing import Final

from schemas.error_code import ErrorCode

DEFAULT_BYTES: Final = 1_048_588
"""Kafka's default of max.message.bytes. kshim creates the topic with it."""
MOST_BYTES: Final = 512 * 1024
"""A batch that holds so much takes no further records."""
LEAST_BYTES: Final = 1024
RECORD_BYTES: Final = 256
"""More than a batch with one record takes beside its key and value, even if that is a pending offset."""
TOO_LARGE: Final = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


class BatchLimit:
    """The batch limit of all shards."""

    def __init__(self, max_message_bytes: int = DEFAULT_BYTES) -> None:
        self.max_message_bytes = max_message_bytes

    @property
    def record_bytes(self) -> int:
        """Limit of one record's key and value together."""
        return max(0, self.max_message_bytes - RECORD_BYTES)

    @property
    def batch_bytes(self) -> int:
        """Limit of several records' keys and values: half of the batch, as each record has a frame."""
        return max(1, min(MOST_BYTES, self.max_message_bytes // 2))

    def refused(self, batch_bytes: int) -> None:
        """Note that the upstream has refused a batch of this size: its limit is lower than kshim knew."""
        self.max_message_bytes = max(LEAST_BYTES, min(self.max_message_bytes, batch_bytes) // 2)
