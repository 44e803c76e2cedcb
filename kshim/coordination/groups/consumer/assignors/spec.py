"""The input of an assignor, and its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kshim.coordination.groups.consumer.partitions import NOTHING, Assignment
from schemas.internal_topics.group_metadata_log import TopicId


class AssignorFailed(Exception):
    """No target can be computed; the text says why."""


class MemberSpec(NamedTuple):
    """One member. Topics that do not exist are left out of its subscription."""

    topic_ids: frozenset[TopicId]
    target: Assignment = NOTHING
    """Its partitions in the last target."""
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """A group whose target is wanted."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[TopicId, int]
    """How many partitions each topic has."""
    is_homogeneous: bool
    """True if all members subscribe to the same topics."""


Assignor = Callable[[GroupSpec], dict[str, Assignment]]
"""Returns the target of each member by its id; members that are missing get nothing."""
