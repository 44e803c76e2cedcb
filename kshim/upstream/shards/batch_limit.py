"""How large a batch of the groups' topic may be: its max.message.bytes, as far as is known.

Kafka refuses a larger batch whole. So what a leader appends at once is cut into batches that are small
enough. What cannot be cut, one record, is refused by the coordinator before it is decided.
"""

from __future__ import annotations

from typing import Final

from schemas.error_code import ErrorCode

DEFAULT_BYTES: Final = 1_048_588
"""Kafka's default of max.message.bytes, and what the topic is made with."""
MOST_BYTES: Final = 512 * 1024
"""A batch that holds this many takes nothing more."""
LEAST_BYTES: Final = 1024
RECORD_BYTES: Final = 256
"""More than a batch with one record takes beside its key and value, also as a pending offset."""
TOO_LARGE: Final = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


class BatchLimit:
    """The limit of all shards."""

    def __init__(self, max_message_bytes: int = DEFAULT_BYTES) -> None:
        self.max_message_bytes = max_message_bytes

    @property
    def record_bytes(self) -> int:
        """The most that key and value of one record may take."""
        return max(0, self.max_message_bytes - RECORD_BYTES)

    @property
    def batch_bytes(self) -> int:
        """The most that keys and values of several records may take: half, as each record has a frame."""
        return max(1, min(MOST_BYTES, self.max_message_bytes // 2))

    def refused(self, batch_bytes: int) -> None:
        """Note that the upstream has refused a batch of this size: its limit is lower than was known."""
        self.max_message_bytes = max(LEAST_BYTES, min(self.max_message_bytes, batch_bytes) // 2)
