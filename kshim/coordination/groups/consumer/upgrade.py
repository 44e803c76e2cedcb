"""Turns a classic group with members into a consumer group: the first member of the new protocol has joined.

Its members stay, with what they have, and go on in the classic protocol. Whether the group can be converted
is found out first, in a group that nobody sees, so a refused conversion disturbs nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partition_epochs import FREE, StillOwned
from kshim.coordination.groups.consumer.partitions import Assignment, Held
from kshim.coordination.groups.consumer.refused import LONGEST_SHOWN, Refused
from kshim.coordination.groups.consumer.topic_names import Subscription, read_subscription
from kshim.coordination.groups.consumer.topics import Topics, metadata_hash
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member as ClassicMember
from kshim.coordination.groups.parked import answer_heartbeats, refuse_syncs
from kshim.coordination.groups.recording import gives_way
from kshim.coordination.groups.settings import MigrationPolicy, Settings
from kshim.coordination.groups.states import State
from schemas.consumer_protocol import decode_assignment, decode_topics
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import ClassicMemberMetadata, ClassicProtocol
from schemas.message import MalformedMessage
from schemas.messages.join_group import JoinGroupResponse

_MALFORMED = "the embedded consumer protocol is malformed."
_CUSTOM = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
    "assignor before re-attempting the upgrade."
)

LARGE_BYTES = 50_000
"""It takes about 10 ms to read the names in so many bytes, and to write them."""


class Converted(NamedTuple):
    """A classic group as a consumer group."""

    group: ConsumerGroup
    members: tuple[Member, ...]
    is_settled: bool
    """False if the classic group was rebalancing, or if nobody has some partition that its members subscribe
    to. Then the consumer group rebalances, even if the member that joins changes nothing."""


def large_subscriptions(classic: ClassicGroup) -> list[bytes]:
    """The metadata of the group's members, if they are so large that they had better be read aside before the
    group is converted; else nothing. O(members).
    """
    if classic.protocol_type != CONSUMER:
        return []
    protocol = _protocol(classic)
    found = [member.metadata(protocol) for member in classic.members.values()]
    return found if sum(map(len, found)) > LARGE_BYTES else []


def convert(
    classic: ClassicGroup, settings: Settings, topics: Topics, known: Mapping[bytes, Subscription]
) -> Converted:
    """Make a consumer group of a classic group's members. Raises Refused; nothing changes.

    known: subscriptions that were read before, by the metadata of their members.
    """

    def refuse(reason: str) -> Refused:
        name = classic.group_id[:LONGEST_SHOWN]
        message = f"Cannot upgrade classic group {name} to consumer group because {reason}"
        return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)

    if settings.group_consumer_migration_policy not in (
        MigrationPolicy.BIDIRECTIONAL,
        MigrationPolicy.UPGRADE,
    ):
        raise refuse("online upgrade is disabled.")
    if classic.protocol_type != CONSUMER:
        raise refuse("the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.group_consumer_max_size:
        raise refuse("the group size exceeds the consumer group maximum size.")
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation
    protocol = _protocol(classic)
    try:
        for each in classic.members.values():
            has_custom_assignor, member = _converted(classic, each, protocol, topics, known)
            if has_custom_assignor:
                raise refuse(_CUSTOM)
            if not group.subscriptions.has_room(member.topic_names):
                raise refuse("its members name too many different topics.")
            group.put_member(member)
            group.targets[member.member_id] = target_of(member)
    except (MalformedMessage, StillOwned) as fault:
        raise refuse(_MALFORMED) from fault
    is_settled = classic.state is State.STABLE and _has_all(group, topics)
    return Converted(group, tuple(group.members.values()), is_settled)


def upgrade(it: Writing, classic: ClassicGroup, converted: Converted) -> None:
    """Write the conversion. Parked requests of classic members are answered REBALANCE_IN_PROGRESS: they are
    to join again.
    """
    draft, group = it.draft, it.group
    _dismiss(draft, classic)
    draft.forget_group(classic)
    for member in converted.members:
        it.put_member(member)
    found = group.subscriptions.existing(it.environment.topics)
    it.put_epoch(classic.generation, metadata_hash(found))
    for member in converted.members:
        it.put_target(member.member_id, target_of(member))
    it.put_assignment_epoch(classic.generation, 0)
    for member in converted.members:
        it.put_current(member)
        it.restart_session(member)


def topics_of(classic: ClassicGroup) -> set[str]:
    """The topics that a classic group's members subscribe to and have, as far as they can be read."""
    found: set[str] = set()
    if classic.protocol_type != CONSUMER:
        return found
    for member in classic.members.values():
        with suppress(MalformedMessage):
            found.update(decode_topics(member.metadata(classic.protocol_name)))
            if member.assignment:
                found.update(each.topic for each in decode_assignment(member.assignment).assigned_partitions)
    return found


def target_of(member: Member) -> Assignment:
    """What a converted member is to have: what it has."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}


def _has_all(group: ConsumerGroup, topics: Topics) -> bool:
    """True if each partition of each topic that the group subscribes to has an owner."""
    return not any(
        group.partition_epochs.of(topic.topic_id, partition) == FREE
        for topic in group.subscriptions.existing(topics)
        for partition in range(topic.partitions)
    )


def _dismiss(draft: Draft, classic: ClassicGroup) -> None:
    draft.cancel_all(classic)
    refuse_syncs(draft, classic, ErrorCode.REBALANCE_IN_PROGRESS)
    answer_heartbeats(draft, classic, ErrorCode.REBALANCE_IN_PROGRESS)
    for member in classic.members.values():
        token = classic.take_join(member)
        if token is not None:
            answer = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
            draft.reply(token, answer)
    gives_way(draft, classic)
    draft.cancel_all(classic)


def _protocol(classic: ClassicGroup) -> str | None:
    """The protocol whose metadata counts; any if there is no member, as all have left a group that is being
    joined.
    """
    is_preparing = classic.state is State.PREPARING_REBALANCE and bool(classic.members)
    return classic.select_protocol() if is_preparing else classic.protocol_name


def _converted(
    classic: ClassicGroup,
    member: ClassicMember,
    protocol: str | None,
    topics: Topics,
    known: Mapping[bytes, Subscription],
) -> tuple[bool, Member]:
    """True if a custom assignor made its assignment; and the member. Raises MalformedMessage."""
    metadata = member.metadata(protocol)
    subscription = known[metadata] if metadata in known else read_subscription(metadata)
    assigned: Held = {}
    has_custom_assignor = False
    if member.assignment:
        assignment = decode_assignment(member.assignment)
        has_custom_assignor = bool(assignment.user_data)
        assigned = {
            topic.topic_id: dict.fromkeys(each.partitions, classic.generation)
            for each in assignment.assigned_partitions
            if each.partitions and (topic := topics.named(each.topic)) is not None
        }
    client_id, client_host = member.described_client
    return has_custom_assignor, Member(
        member.member_id,
        epoch=classic.generation,
        previous_epoch=classic.generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topic_names=subscription.names,
        assigned=assigned,
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols.each()
            ),
        ),
    )
