"""The move of a coordinator, as it is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

NOBODY = -1


@dataclass(frozen=True, slots=True)
class CoordinatorMoved:
    """A partition of __consumer_offsets, and with it the coordinator of its groups, has another leader."""

    shard: int
    before: int
    """A node id; NOBODY if it had no leader."""
    after: int
    kind: ClassVar = "coordinator moved"

    def __str__(self) -> str:
        after = "nobody" if self.after == NOBODY else f"broker {self.after}"
        before = "nobody" if self.before == NOBODY else f"broker {self.before}"
        return f"__consumer_offsets-{self.shard}: coordinated by {after}, previously by {before}"
