"""Answers heartbeats that have waited, once there is something to say to their members; see `waiting`.

In a large group a new target is news for all. So some members are looked at in the decision that brings it,
and the others in decisions of their own.
"""

from __future__ import annotations

from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.heartbeat import check, heartbeat
from kshim.coordination.groups.consumer.membership import known_member
from kshim.coordination.groups.consumer.refused import Refused, refusal
from kshim.coordination.groups.consumer.waiting import has_news, interval_ms, may_have_news, put_off, take
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind

MOST_WORK = 1_000
MEMBER_WORK = 10
"""How much work a member is, beside one for each topic that it has or is to have. After MOST_WORK others get
their turn: that is some 10 ms.
"""


def release_changed(it: Writing) -> None:
    """Answer the parked heartbeats that have something to say, if anything was written."""
    group = it.group
    if it.draft.writes and group.parked:
        for member_id in [each for each in group.parked if each not in group.members]:
            answer_parked(it, member_id)
        group.to_look_at.update(dict.fromkeys(may_have_news(it)))
    _go_on_looking(it)


def _go_on_looking(it: Writing) -> None:
    """Look at some members that may have to hear something, and answer them."""
    to_look_at = it.group.to_look_at
    if not to_look_at:
        return
    some, left = [], MOST_WORK
    while to_look_at and left > 0:
        member_id = next(iter(to_look_at))
        del to_look_at[member_id]
        some.append(member_id)
        left -= _work(it.group, member_id)
    for member_id in [each for each in some if has_news(it, each)]:
        if not put_off(it, member_id):
            answer_parked(it, member_id)
    if to_look_at:
        it.arm(TimerKind.LOOK, "", 0)


def _work(group: ConsumerGroup, member_id: str) -> int:
    """How much work it is to look at a member, and to answer it."""
    member = group.members.get(member_id)
    held = 0 if member is None else len(member.assigned) + len(group.target_of(member))
    return MEMBER_WORK + held


def answer_parked(it: Writing, member_id: str) -> None:
    """Answer a member's parked heartbeat, if there is one, like one that comes now."""
    parked = take(it, member_id)
    if parked is None:
        return
    caller, request, visible, patience, _ = parked
    it.releases = True
    try:
        known_member(it.group, member_id)
        checked = check(it, caller, request)
        response = heartbeat(it, checked, request, visible, interval_ms(it, patience))
    except Refused as refused:
        response = refusal(refused)
    it.releases = False
    it.draft.reply(caller.token, response)
