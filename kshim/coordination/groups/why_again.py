"""Finds out why a known member joins again, as far as its requests show it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.offered import Protocols, listed_names
from kshim.coordination.groups.texts import joined
from kshim.coordination.groups.trigger import Trigger
from schemas.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    decode_topics,
    partitions_of,
)
from schemas.message import MalformedMessage
from schemas.messages.join_group import JoinGroupRequest

Why = tuple[Trigger, str]
"""The cause, and more about it in words, or an empty text."""


MOST_ELEMENTS = 20_000
"""How many elements a subscription or an assignment may have; larger ones are not compared."""


def why_again(
    draft: Draft, group: ClassicGroup, member: Member, request: JoinGroupRequest, protocols: Protocols
) -> Why:
    """The cause of a JoinGroup from a known member. Call this before the member is updated. O(its
    subscription).
    """
    leads = group.leader == member.member_id
    again = Trigger.LEADER_REJOINED if leads else Trigger.MEMBER_REJOINED
    protocol_name = group.protocol_name
    if group.protocol_type != CONSUMER or protocol_name is None or not protocols.has(protocol_name):
        return (Trigger.COORDINATOR_MOVED if _was_loaded(draft, group, request) else again), ""
    try:
        before = set(decode_topics(member.metadata(protocol_name), MOST_ELEMENTS))
        now = set(decode_topics(protocols.metadata(protocol_name), MOST_ELEMENTS))
        given_up = _given_up(group, member)
    except MalformedMessage:
        return again, ""
    if before != now:
        return Trigger.SUBSCRIPTION_CHANGED, _difference(before, now)
    if given_up:
        return Trigger.PARTITIONS_GIVEN_UP, _listed(given_up)
    if _was_loaded(draft, group, request):
        return Trigger.COORDINATOR_MOVED, ""
    if group.loaded_ms is None and not protocols.names_as(member.protocols):  # else only one is known
        return Trigger.ASSIGNORS_CHANGED, listed_names(protocols.names)
    changes = filter(None, (draft.topics.change_since(topic, group.joined_ms) for topic in sorted(now)))
    detail = joined(changes, "; ") if leads else ""
    return (Trigger.TOPIC_CHANGED if detail else again), detail


def _was_loaded(draft: Draft, group: ClassicGroup, request: JoinGroupRequest) -> bool:
    """True if the group's coordinator loaded it less than a session timeout ago; its members may join again
    because they could not find the coordinator before.
    """
    return group.loaded_ms is not None and draft.now_ms - group.loaded_ms <= request.session_timeout_ms


def _given_up(group: ClassicGroup, member: Member) -> frozenset[tuple[str, int]]:
    """The partitions that the member owned when it joined last, and that were not assigned to it again. A
    cooperative member gives these up and joins again (KIP-429). An eager one owns no partitions while it
    joins.
    """
    if not member.holds:
        return frozenset()
    owned = decode_subscription(member.metadata(group.protocol_name), MOST_ELEMENTS).owned_partitions
    given = decode_assignment(member.holds, MOST_ELEMENTS).assigned_partitions
    return partitions_of(owned) - partitions_of(given)


def _difference(before: set[str], now: set[str]) -> str:
    added = (f"+{topic}" for topic in sorted(now - before))
    return joined(chain(added, (f"-{topic}" for topic in sorted(before - now))))


def _listed(partitions: Collection[tuple[str, int]]) -> str:
    return joined(f"{topic}-{partition}" for topic, partition in sorted(partitions))
