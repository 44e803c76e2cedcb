"""The input of an assignor, its result, and its error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from kshim.coordination.groups.consumer.partitions import NOTHING, Assignment
from kshim.coordination.java import string_hash
from schemas.internal_topics.group_metadata_log import TopicId

R = TypeVar("R")

InSteps: TypeAlias = Generator[int, None, R]
"""Work that may take long. At each yield it may rest; the number is that of the steps since the last time, of
a microsecond or less. Returns the result.
"""


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
    code_of: Callable[[str], int] = string_hash
    """Returns the `string_hash` of a member id."""


Assignor = Callable[[GroupSpec], InSteps[dict[str, Assignment]]]
"""Returns the target of each member by its id; members that are missing get nothing."""


def subscribers(subscriptions: Iterable[frozenset[TopicId]]) -> InSteps[dict[TopicId, Sequence[int]]]:
    """The numbers of each topic's subscribers, the lowest first.

    subscriptions: those of member 0, member 1, and so on. Equal ones are looked at once: a group with many
    members and many topics costs no more than its different subscriptions.
    """
    alike: defaultdict[frozenset[TopicId], list[int]] = defaultdict(list)
    for number, topic_ids in enumerate(subscriptions):
        alike[topic_ids].append(number)
    kinds = list(alike.values())
    of_topic: defaultdict[TopicId, list[int]] = defaultdict(list)
    for kind, topic_ids in enumerate(alike):
        for topic_id in topic_ids:
            of_topic[topic_id].append(kind)
        yield len(topic_ids)
    joined: dict[tuple[int, ...], list[int]] = {}
    found: dict[TopicId, Sequence[int]] = {}
    for topic_id, numbers in of_topic.items():
        those = tuple(numbers)
        if those not in joined:
            joined[those] = sorted(chain.from_iterable(kinds[kind] for kind in those))
            yield len(joined[those])
        found[topic_id] = joined[those]
    return found
