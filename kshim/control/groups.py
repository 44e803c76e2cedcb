"""The commands about consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.control.commands import Command, Commands
from kshim.recorder.shown import shown_member

if TYPE_CHECKING:
    from kshim.coordination.interfaces import Groups


class GroupSteering:
    """Answers questions about groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def commands(self) -> Commands:
        return {"explain-group": Command(self.explain, (str,))}

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        return self._groups.shard_for(group_id)

    def explain(self, group_id: str) -> dict[str, object] | None:
        """The group's state, and what it waits for, as a JSON value; None if the group does not exist."""
        found = self._groups.waits_for(group_id)
        if found is None:
            return None
        return {**found, "members": [shown_member(each) for each in found["members"]]}
