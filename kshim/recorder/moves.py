"""The event that a coordinator has moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

NOBODY = -1


@dataclass(frozen=True, slots=True)
class CoordinatorMoved:
    """A partition of __consumer_offsets has another leader, so its groups have another coordinator."""

    shard: int
    before: int
    """The previous leader's node id; NOBODY if there was no leader."""
    after: int
    kind: ClassVar = "coordinator moved"

    def __str__(self) -> str:
        after = "nobody" if self.after == NOBODY else f"broker {self.after}"
        before = "nobody" if self.before == NOBODY else f"broker {self.before}"
        return f"__consumer_offsets-{self.shard}: coordinated by {after}, previously by {before}"
