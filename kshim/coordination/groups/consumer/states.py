"""The states of a consumer group, which follow from its epochs and its members."""

from __future__ import annotations

from enum import StrEnum


class GroupState(StrEnum):
    """A group's state; the value is its name on the wire. Rules are tried in this order."""

    EMPTY = "Empty"
    """It has no members."""
    ASSIGNING = "Assigning"
    """Its target is of an earlier epoch."""
    RECONCILING = "Reconciling"
    """Some member has not reached the target."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Never a group's state; ListGroups and ConsumerGroupDescribe know the word."""
