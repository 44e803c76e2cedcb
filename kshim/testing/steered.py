"""A cluster whose groups a test steers: it removes members, and moves committed offsets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from kshim.testing.arguments import waiting
from kshim.testing.cluster import Cluster
from kshim.testing.groups import TopicPartition

__all__ = ["SteeredCluster"]


class SteeredCluster(Cluster):
    """A cluster that takes kshim's commands, or some of them. They raise ControlError."""

    @abstractmethod
    def _ask(self, command: str, *arguments: object) -> Any:
        """Run a command, and return its JSON value."""

    @waiting
    def remove(self, group: str, member: str) -> None:
        """Remove a member, as Kafka's admin client does. member: its member id or its group.instance.id."""
        self._ask("remove-member", group, member)

    @waiting
    def empty_group(self, group: str) -> None:
        """Remove all members of a group."""
        self._ask("empty-group", group)

    @waiting
    def delete_group(self, group: str) -> None:
        """Delete a group without members, and its offsets."""
        self._ask("delete-group", group)

    @waiting
    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets for a group without members: `kshim.set_offsets("readers", {("orders", 0): 5})`."""
        rows = [[topic, partition, offset] for (topic, partition), offset in offsets.items()]
        self._ask("set-offsets", group, rows)

    @waiting
    def reset_offsets(
        self,
        group: str,
        *topics: str,
        to: Literal["earliest", "latest"] | datetime | None = None,
        shift: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Move the committed offsets of a group without members, and return them.

        topics: if none is given, all partitions that the group has committed. to: "earliest", "latest", or a
        time: the first record that is not older. shift: in place of `to`, a number of records, negative to
        read records again.
        """
        if (to is None) == (shift is None):
            raise ValueError("give either to or shift")
        if isinstance(to, datetime):
            place, value = "time", int(to.timestamp() * 1000)
        else:
            place, value = to or "shift", shift or 0
        rows = self._ask("reset-offsets", group, [[topic, -1] for topic in topics], place, value)
        return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}
