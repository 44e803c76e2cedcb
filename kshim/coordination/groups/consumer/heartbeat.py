"""ConsumerGroupHeartbeat (68): a member joins, says what it owns, learns what it is to own, or leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.fencing import fence
from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, Member
from kshim.coordination.groups.consumer.membership import (
    check_holder,
    check_names,
    check_room,
    check_state,
    find_member,
    known_member,
    take_place,
)
from kshim.coordination.groups.consumer.partitions import HOLDS_NOTHING, Held
from kshim.coordination.groups.consumer.reconciliation import Owned
from kshim.coordination.groups.consumer.recording import Cause, resumes
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.regexes import Searched, change_regex, check_regex, maybe_search
from kshim.coordination.groups.consumer.targets import assign, refresh, take_step
from kshim.coordination.groups.consumer.topic_names import size_bytes, topic_names
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.trigger import Trigger
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import TopicId
from schemas.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

T = TypeVar("T")

FEW_NAMES = 30
"""So many names fit into a record, however long they are."""


class Checked(NamedTuple):
    """A heartbeat that is not refused."""

    old: Member
    """The member as the request found it."""
    new: Member
    """The member with all that the request says."""
    replaced: Member | None
    """The static member whose place it takes."""
    owned: Owned | None
    """The partitions that it says it owns."""
    rebalances: bool = False
    """True if the group is to rebalance, whatever the request changes."""


def check(
    it: Writing,
    caller: Caller,
    request: ConsumerGroupHeartbeatRequest,
    names: frozenset[str] | None = None,
) -> Checked:
    """Find the member of a heartbeat that joins or stays. Raises Refused; nothing changes.

    names: the topics that it names, if they were prepared.
    """
    if names is None and request.subscribed_topic_names is not None:
        names = topic_names(request.subscribed_topic_names)
    if names is not None:
        _check_size(it, names)
        check_names(it, names)
    owned = _owned(request)
    member_id = request.member_id or it.environment.new_member_id()
    check_room(it, request.member_id, request.instance_id)
    old, replaced = find_member(it.group, member_id, request.instance_id, request.member_epoch, owned)
    new = _merged(
        old, caller, request, old.topic_names if names is None else it.group.subscriptions.same(names)
    )
    check_regex(it, new)
    check_state(new, owned)
    return Checked(old, new, replaced, owned)


def heartbeat(
    it: Writing,
    checked: Checked,
    request: ConsumerGroupHeartbeatRequest,
    visible: Visible,
    interval_ms: int,
) -> ConsumerGroupHeartbeatResponse:
    """Answer a member that joins or stays.

    visible: returns those of some topics that the sender may see. interval_ms: until its next heartbeat.
    """
    old, new, replaced, owned, rebalances = checked
    if replaced is not None:
        take_place(it, replaced, old)
        it.noted.cause = Cause(Trigger.STATIC_MEMBER_REPLACED) if rebalances else None
    epoch = it.group.epoch
    has_new_subscription = subscribe(it, old, new, visible, rebalances=rebalances)
    if replaced is not None and it.group.epoch == epoch:
        resumes(it.draft, it.group, replaced, new)
    assign(it)
    reached = take_step(it, new, owned, has_new_subscription)
    it.restart_session(reached)
    is_full = request.rebalance_timeout_ms != -1 and owned is not None and _names_topics(request)
    shows = request.member_epoch == JOINS or is_full or old.assigned != reached.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=reached.member_id,
        member_epoch=reached.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=_assignment(reached.assigned) if shows else None,
    )


def subscribe(it: Writing, old: Member, new: Member, visible: Visible, *, rebalances: bool = False) -> bool:
    """Write what has changed of a member, and a new group epoch if that matters to the others, or if the
    group `rebalances`; return True if the topics that the member subscribes to have changed.
    """
    group, assignors = it.group, it.environment.assignors
    if new is old and not rebalances and not group.subscriptions.regexes:
        if group.needs_refresh(it.now_ms):
            refresh(it, is_bumped=False)
        return False
    before = Searched.of(group)
    preferred = group.subscriptions.preferred_assignor(assignors)
    is_new_regex = bool(new.regex) and new.regex not in group.subscriptions.regexes
    if new != old:
        it.put_member(new)
    has_new_names = new.topic_names != old.topic_names
    has_new_regex = new.regex != old.regex
    is_bumped = change_regex(it, old, new) or has_new_names
    maybe_search(it, before, is_new_regex and has_new_regex, visible)
    is_bumped = is_bumped or rebalances or group.subscriptions.preferred_assignor(assignors) != preferred
    if is_bumped or group.needs_refresh(it.now_ms):
        refresh(it, is_bumped)
    return has_new_names or has_new_regex


def leave(it: Writing, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Answer a member that leaves, or a static one that goes away and will come back. Raises Refused.

    The member's epoch does not matter.
    """
    group, instance_id = it.group, request.instance_id
    if instance_id is None:
        member = known_member(group, request.member_id)
    else:
        holder = group.static_member(instance_id)
        member = check_holder(group, holder, request.member_id, instance_id)
    if instance_id is not None and request.member_epoch == GOES_AWAY:
        it.put_current(replace(member, epoch=GOES_AWAY, revoking=HOLDS_NOTHING))
    else:
        fence(it, (member,))
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _check_size(it: Writing, names: frozenset[str]) -> None:
    """Refuse a subscription whose record Kafka's log would not take."""
    if len(names) > FEW_NAMES and size_bytes(names) > it.settings.message_max_bytes:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _merged(
    old: Member, caller: Caller, request: ConsumerGroupHeartbeatRequest, names: frozenset[str]
) -> Member:
    """The member with all that the request says. What the request leaves out stays as it was.

    Most heartbeats say nothing: then it is the same object.
    """
    if (
        request.subscribed_topic_names is None
        and request.rebalance_timeout_ms == -1
        and request.subscribed_topic_regex is None
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
        and old.classic is None
        and old.client_id == caller.client_id
        and old.client_host == caller.client_host
    ):
        return old
    return replace(
        old,
        instance_id=_given(request.instance_id, old.instance_id),
        rack_id=_given(request.rack_id, old.rack_id),
        rebalance_timeout_ms=(
            old.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        server_assignor=_given(request.server_assignor, old.server_assignor),
        topic_names=names,
        regex=_given(request.subscribed_topic_regex, old.regex),
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _given(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    """The partitions that the sender says it owns; None if it does not say."""
    if request.topic_partitions is None:
        return None
    owned: dict[TopicId, list[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


def _names_topics(request: ConsumerGroupHeartbeatRequest) -> bool:
    return request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None


def _assignment(held: Held) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
            for topic_id, partitions in held.items()
        )
    )
