"""Heartbeats that only say that a member lives, in a group where nothing is due: nearly all of them.

Each gets the answer of `heartbeat`, and has its effect, a whole session, without its steps.
"""

from __future__ import annotations

from typing import Protocol

from kshim.coordination.groups.consumer.checks import says_nothing
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class Sender(Protocol):
    """The sender of a heartbeat, by the two facts that a group remembers of it."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


def quiet_member(
    group: ConsumerGroup, sender: Sender, request: ConsumerGroupHeartbeatRequest, now_ms: int
) -> Member | None:
    """Return the sender of a heartbeat that says nothing, if it has its target; None for other heartbeats."""
    member = group.members.get(request.member_id)
    if (
        member is None
        or member.epoch != request.member_epoch
        or not says_nothing(request)
        or not _is_settled(group, now_ms)
        or not member.is_reconciled_to(group.epoch)
        or not _is_same(member, sender)
    ):
        return None
    return member


def quiet_answer(member: Member, interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to such a heartbeat: it says nothing, either."""
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id, member_epoch=member.epoch, heartbeat_interval_ms=interval_ms
    )


def _is_settled(group: ConsumerGroup, now_ms: int) -> bool:
    """True if the group has its target, and neither topics nor expressions are to be looked at."""
    return (
        group.assignment_epoch == group.epoch
        and not group.subscriptions.regexes
        and not group.needs_refresh(now_ms)
    )


def _is_same(member: Member, sender: Sender) -> bool:
    """True if the member is what the group knows: it speaks the consumer protocol, and calls as before."""
    return (
        member.classic is None
        and member.client_id == sender.client_id
        and member.client_host == sender.client_host
    )
