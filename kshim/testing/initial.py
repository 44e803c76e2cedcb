"""Topics and records that a server of tests begins with, and has again after `reset`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from kshim.testing.new_records import NewRecord, Text, new_record

__all__ = ["NOTHING", "GivenRecords", "GivenTopics", "Initial", "new_initial"]

GivenTopics: TypeAlias = Mapping[str, int | None] | Iterable[str]
"""Partitions by topic, or topics with the default number of partitions."""
GivenRecords: TypeAlias = Mapping[str, Iterable[NewRecord | tuple[Text, Text] | Text]]
"""Records by topic, as `Cluster.produce` takes them."""


class Initial(NamedTuple):
    topics: Mapping[str, int | None]
    """The number of partitions by topic; None for the broker's default."""
    records: Mapping[str, tuple[NewRecord, ...]]

    @property
    def names(self) -> list[str]:
        """All topics, also those that only have records."""
        return list(dict.fromkeys((*self.topics, *self.records)))


NOTHING = Initial({}, {})


def new_initial(topics: GivenTopics | None, records: GivenRecords | None) -> Initial:
    """Raises TypeError if a record is none."""
    partitions = topics if isinstance(topics, Mapping) else dict.fromkeys(topics or ())
    return Initial(
        partitions, {topic: tuple(map(new_record, values)) for topic, values in (records or {}).items()}
    )
