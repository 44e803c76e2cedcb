"""A consumer group as people are shown it; see `groups.seen`."""

from __future__ import annotations

from typing import NamedTuple

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import Assignment, Held, joined
from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.offsets import Committed
from kshim.coordination.groups.seen import SeenGroup
from schemas.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, encode_assignment
from schemas.mapped import Mapped


class SeenMember(NamedTuple):
    """A member, with the names that members of classic groups have, too."""

    member: Member
    wanted: Assignment
    """What it is to have."""
    group_session_timeout_ms: int
    topics: Topics

    @property
    def member_id(self) -> str:
        return self.member.member_id

    @property
    def client_id(self) -> str:
        return self.member.client_id

    @property
    def client_host(self) -> str:
        return self.member.client_host

    @property
    def group_instance_id(self) -> str | None:
        return self.member.instance_id

    @property
    def session_timeout_ms(self) -> int:
        """Its own if it speaks the classic protocol, else the group's."""
        classic = self.member.classic
        return self.group_session_timeout_ms if classic is None else classic.session_timeout_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        return self.member.rebalance_timeout_ms

    @property
    def assignment(self) -> bytes:
        """What it has, as SyncGroup would assign it; that includes what it is still to give up."""
        return held_by(self.member, self.topics)

    @property
    def target(self) -> bytes:
        """What it is to have, as SyncGroup would assign it."""
        return as_assignment(self.wanted, self.topics)


def see(group: ConsumerGroup, environment: Environment, node_id: int, committed: Committed) -> SeenGroup:
    """Show `group` as it is now. O(members)."""
    session_ms = environment.configs.session_timeout_ms(group.group_id)

    def seen(member: Member) -> SeenMember:
        return SeenMember(member, group.target_of(member), session_ms, environment.topics)

    return SeenGroup(
        group_id=group.group_id,
        node_id=node_id,
        state=group.state,
        generation=group.epoch,
        protocol_type=CONSUMER,
        protocol=group.subscriptions.preferred_assignor(environment.assignors),
        leader="",
        members=Mapped(seen, tuple(group.members.values())),
        committed=committed,
        assignment_epoch=group.assignment_epoch,
    )


def held_by(member: Member, topics: Topics) -> bytes:
    """The partitions that a member has, as SyncGroup would assign them."""
    revoking = member.revoking
    return as_assignment(joined(member.assigned, revoking) if revoking else member.assigned, topics)


def as_assignment(partitions: Assignment | Held, topics: Topics) -> bytes:
    """Partitions as SyncGroup would assign them; empty for none. Topics that are deleted are left out."""
    named = []
    for topic_id, of_topic in partitions.items():
        topic = topics.with_id(topic_id)
        if topic is not None:
            named.append(TopicPartition(topic=topic.name, partitions=tuple(sorted(of_topic))))
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=tuple(named))) if named else b""
