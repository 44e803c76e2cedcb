"""Turns a consumer group back into a classic group, when only classic members remain.

The members keep what they hold, and join again. If the group is upgraded before they did, nobody has been
given what another member still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import Assignment, joined, without_epochs
from kshim.coordination.groups.consumer.reports import GroupConverted
from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.member import Member as ClassicMember
from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.rebalance import prepare_rebalance
from kshim.coordination.groups.settings import MigrationPolicy, Settings
from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Trigger
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_assignment,
    version_of,
)
from schemas.internal_topics.group_metadata_log import GroupMetadataKey
from schemas.message import MalformedMessage
from schemas.messages.join_group import JoinGroupRequestProtocol


def becomes_classic(group: ConsumerGroup, remaining: Sequence[Member], settings: Settings) -> bool:
    """True if the group is to be converted when only these members remain."""
    return (
        bool(remaining)
        and all(member.classic is not None for member in remaining)
        and settings.group_consumer_migration_policy
        in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)
        and len(remaining) <= settings.group_max_size
    )


def downgrade(it: Writing, remaining: Sequence[Member], *, rebalances: bool) -> None:
    """Write the conversion; then the classic group rebalances, if it is to. Its record then names no leader,
    so that it rebalances after a restart, too.
    """
    group, draft = it.group, it.draft
    epoch = group.epoch
    it.delete_group()
    classic = ClassicGroup(group.group_id, draft.now_ms, state=State.STABLE, generation=epoch)
    for member in remaining:
        classic.add(_classic(group.group_id, member, it.environment.topics), CONSUMER)
    classic.protocol_name = classic.select_protocol()
    classic.keep_subscriptions()
    record = classic.to_metadata()
    draft.write(
        GroupMetadataKey(group=group.group_id), replace(record, leader=None) if rebalances else record
    )
    it.classic_groups[group.group_id] = classic
    draft.report(GroupConverted(group.group_id, False, epoch, len(remaining)))
    for each in classic.members.values():
        draft.restart_session(each)
    if rebalances:
        prepare_rebalance(draft, classic, Trigger.PROTOCOL_CHANGED, ())


def assignment_bytes(member: Member, assignment: Assignment, topics: Topics) -> bytes:
    """An assignment as a classic member reads it, in the version of its subscription."""
    assert member.classic is not None
    found = []
    for topic_id, partitions in assignment.items():
        topic = topics.with_id(topic_id)
        if topic is not None:
            found.append(TopicPartition(topic=topic.name, partitions=tuple(sorted(partitions))))
    protocols = member.classic.supported_protocols
    try:
        version = version_of(protocols[0].metadata if protocols else b"\0\0")
    except MalformedMessage:
        version = 0
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=tuple(found)), version)


def _classic(group_id: str, member: Member, topics: Topics) -> ClassicMember:
    assert member.classic is not None
    held = without_epochs(joined(member.assigned, member.revoking))
    assignment = assignment_bytes(member, held, topics)
    return ClassicMember(
        group_id=group_id,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=Protocols.of(
            tuple(
                JoinGroupRequestProtocol(name=each.name, metadata=each.metadata)
                for each in member.classic.supported_protocols
            )
        ),
        assignment=assignment,
        holds=assignment,
    )
