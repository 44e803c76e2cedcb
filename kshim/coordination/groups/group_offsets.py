"""The offsets that one group has committed.

A group may have thousands of offsets that nobody asks for. So loaded offsets stay bytes, as in the log, which
take a quarter of the memory of objects. They are decoded each time they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from kshim.coordination.groups.pending_offsets import Partition
from schemas.internal_topics.group_metadata_log import OffsetCommitValue, decode_plain_offset_commit

T = TypeVar("T")


class GroupOffsets(Mapping[Partition, OffsetCommitValue]):
    """The last committed offset of each partition. `HardState` alone writes `stored`."""

    __slots__ = ("stored",)

    def __init__(self) -> None:
        self.stored: dict[Partition, OffsetCommitValue | bytes] = {}
        """Values that are bytes are encoded values for which `is_plain_offset_commit` is true."""

    def __getitem__(self, partition: Partition) -> OffsetCommitValue:
        value = self.stored[partition]
        return decode_plain_offset_commit(value) if isinstance(value, bytes) else value

    def __contains__(self, partition: object) -> bool:
        return partition in self.stored

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)
