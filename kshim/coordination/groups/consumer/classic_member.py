"""JoinGroup, SyncGroup and Heartbeat of a classic member of a consumer group.

It gets what the server assigns. Its generation is its member epoch, there is no leader, and nobody waits for
the others: a JoinGroup is a step to the target, SyncGroup returns what the member has, and Heartbeat calls it
to join again when there is another step to take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.downgrade import assignment_bytes, becomes_classic, downgrade
from kshim.coordination.groups.consumer.environment import all_visible
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.heartbeat import subscribe
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.membership import (
    check_holder,
    check_names,
    check_room,
    known_member,
    successor,
    take_place,
)
from kshim.coordination.groups.consumer.partition_epochs import FREE
from kshim.coordination.groups.consumer.partitions import without_epochs
from kshim.coordination.groups.consumer.reconciliation import Owned
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.targets import assign, take_step
from kshim.coordination.groups.consumer.topic_names import topic_names
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.settings import MigrationPolicy
from kshim.coordination.groups.timers import TimerKind
from schemas.consumer_protocol import ConsumerProtocolSubscription, decode_subscription
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import ClassicMemberMetadata, ClassicProtocol
from schemas.internal_topics.group_metadata_log import TopicId
from schemas.message import MalformedMessage
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_KNOWN_ID = 4
FIRST_VERSION_WITH_PROTOCOL = 5
_INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def join(it: Writing, caller: Caller, request: JoinGroupRequest) -> JoinGroupResponse:
    """Answer a JoinGroup, at once. Raises Refused."""
    is_new = not request.member_id
    member_id = request.member_id or it.environment.new_member_id()
    _check_join(it, request, member_id)
    if is_new and request.group_instance_id is None and caller.api_version >= FIRST_VERSION_WITH_KNOWN_ID:
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    old, holder = _find(it.group, member_id, request, is_new)
    subscription = _subscription(request)
    names = topic_names(subscription.topics)
    check_names(it, names)
    new = _merged(old, caller, request, subscription.rack_id, names)
    if holder is not None:
        take_place(it, holder, old)
    reached, generation = _step(it, old, new, holder, _owned(it, subscription))
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=reached.member_id,
    )


def sync(it: Writing, request: SyncGroupRequest, version: int) -> SyncGroupResponse:
    """Answer a SyncGroup with what the member has. Raises Refused."""
    group = it.group
    member = _known(group, request.member_id, request.group_instance_id)
    assert member.classic is not None
    _check_generation(member, request.generation_id)
    first = member.classic.supported_protocols[0].name
    has_protocol = version >= FIRST_VERSION_WITH_PROTOCOL
    if has_protocol and (request.protocol_type, request.protocol_name) != (CONSUMER, first):
        raise Refused(_INCONSISTENT)
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _call_back(it, member)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
    it.cancel(TimerKind.RESYNC, member.member_id)
    it.restart_session(member)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_bytes(member, without_epochs(member.assigned), it.environment.topics),
    )


def classic_heartbeat(it: Writing, request: HeartbeatRequest) -> ErrorCode:
    """The answer to a Heartbeat: REBALANCE_IN_PROGRESS if the member can take a step."""
    group = it.group
    try:
        member = _known(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
    except Refused as refused:
        return refused.error
    it.restart_session(member)
    can_step = (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not waits_for_others(group, member))
    )
    if not can_step:
        return ErrorCode.NONE
    _call_back(it, member)
    return ErrorCode.REBALANCE_IN_PROGRESS


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """True if others hold something that the member is to have."""
    return member.state is MemberState.UNRELEASED_PARTITIONS and any(
        partition not in member.assigned.get(topic_id, ())
        and group.partition_epochs.of(topic_id, partition) != FREE
        for topic_id, partitions in group.target_of(member).items()
        for partition in partitions
    )


def _check_join(it: Writing, request: JoinGroupRequest, member_id: str) -> None:
    if it.settings.group_consumer_migration_policy is MigrationPolicy.DISABLED:
        raise Refused(_INCONSISTENT)
    check_room(it, member_id, request.group_instance_id)
    known = it.group.subscriptions
    is_common = any(
        known.classic_protocols[protocol.name] == known.classic_members for protocol in request.protocols
    )
    if request.protocol_type != CONSUMER or not is_common:
        raise Refused(_INCONSISTENT)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(request.protocols[0].metadata)
    except MalformedMessage as fault:
        raise Refused(_INCONSISTENT) from fault


class _Found(NamedTuple):
    member: Member
    replaced: Member | None = None


def _find(group: ConsumerGroup, member_id: str, request: JoinGroupRequest, is_new: bool) -> _Found:
    """Return the member that joins, and the static member that it replaces. An unknown id is a new member."""
    instance_id = request.group_instance_id
    if instance_id is None:
        return _Found(group.members.get(member_id) or Member(member_id))
    holder = group.static_member(instance_id)
    if not is_new:
        return _Found(check_holder(group, holder, member_id, instance_id))
    if holder is None:
        return _Found(Member(member_id))
    return _Found(successor(holder, member_id), holder)


def _merged(
    old: Member, caller: Caller, request: JoinGroupRequest, rack_id: str | None, names: frozenset[str]
) -> Member:
    instance_id, timeout_ms = request.group_instance_id, request.rebalance_timeout_ms
    return replace(
        old,
        instance_id=old.instance_id if instance_id is None else instance_id,
        rack_id=old.rack_id if rack_id is None else rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=names,
        regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=each.name, metadata=bytes(each.metadata)) for each in request.protocols
            ),
        ),
    )


def _step(it: Writing, old: Member, new: Member, holder: Member | None, owned: Owned) -> tuple[Member, int]:
    """Take the member one step to its target; return it, and its generation. If it has taken the place of the
    last member of the consumer protocol, the group becomes a classic one, which rebalances unless all have
    their targets.
    """
    group = it.group
    is_changed = subscribe(it, old, new, all_visible)
    remaining = tuple(group.members.values())
    if holder is not None and becomes_classic(group, remaining, it.settings):
        rebalances = group.assignment_epoch < group.epoch
        reached = new if rebalances else take_step(it, new, owned, is_changed)
        rebalances = rebalances or group.state is not GroupState.STABLE
        generation = group.epoch if rebalances else reached.epoch
        downgrade(it, tuple(group.members.values()), rebalances=rebalances)
        return reached, generation
    assign(it)
    reached = take_step(it, new, owned, is_changed)
    it.cancel(TimerKind.REJOIN, reached.member_id)
    it.restart_session(reached)
    it.arm(TimerKind.RESYNC, reached.member_id, _sync_timeout_ms(reached))
    return reached, reached.epoch


def _sync_timeout_ms(member: Member) -> int:
    """How long to wait for the member's SyncGroup. JoinGroup v0 has no rebalance timeout."""
    assert member.classic is not None
    timeout_ms = member.rebalance_timeout_ms
    return member.classic.session_timeout_ms if timeout_ms == -1 else timeout_ms


def _owned(it: Writing, subscription: ConsumerProtocolSubscription) -> Owned:
    owned: dict[TopicId, list[int]] = {}
    for each in subscription.owned_partitions:
        topic = it.environment.topics.named(each.topic)
        if topic is not None:
            owned.setdefault(topic.topic_id, []).extend(each.partitions)
    return owned


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """The classic member that a request names."""
    if instance_id is None:
        member = known_member(group, member_id)
    else:
        member = check_holder(group, group.static_member(instance_id), member_id, instance_id)
    if member.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)


def _call_back(it: Writing, member: Member) -> None:
    """Wait for the member to join again, from the first call on."""
    if not it.is_armed(TimerKind.REJOIN, member.member_id):
        it.arm(TimerKind.REJOIN, member.member_id, _sync_timeout_ms(member))
