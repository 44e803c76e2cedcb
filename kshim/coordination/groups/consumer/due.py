"""The timers of a consumer group, and what each does when it is due."""

from __future__ import annotations

from collections.abc import Callable

from kshim.coordination.groups.consumer.fencing import fence
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.regexes import go_on_searching
from kshim.coordination.groups.consumer.releasing import answer_parked, release_changed
from kshim.coordination.groups.consumer.targets import catch_up
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind
from kshim.coordination.groups.trigger import Gone

_OF_GROUP: dict[TimerKind, Callable[[Writing], None]] = {
    TimerKind.REGEX: go_on_searching,
    TimerKind.TARGET: catch_up,
    TimerKind.LOOK: lambda it: None,  # `release_changed` follows each timer
}


def do_due(it: Writing, kind: TimerKind, member_id: str) -> None:
    """Do the work of one timer; if it is of a member, only if the member still exists. Tell members what has
    changed.

    member_id: empty for a timer of the group.
    """
    if kind in _OF_GROUP:
        _OF_GROUP[kind](it)
    elif kind is TimerKind.WAIT:
        answer_parked(it, member_id)
    elif member_id in it.group.members:
        _remove_if_overdue(it, kind, it.group.members[member_id])
    release_changed(it)


def _remove_if_overdue(it: Writing, kind: TimerKind, member: Member) -> None:
    if IS_OVERDUE[kind](member):
        it.noted.gone = GONE[kind]
        if kind is TimerKind.SESSION:
            it.noted.heard_ms = it.now_ms - it.session_timeout_ms(member)
        fence(it, (member,))


def _always(member: Member) -> bool:
    return True


def _has_not_revoked(member: Member) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS


IS_OVERDUE: dict[TimerKind, Callable[[Member], bool]] = {
    TimerKind.SESSION: _always,
    TimerKind.REVOCATION: _has_not_revoked,
    TimerKind.REJOIN: _always,
    TimerKind.RESYNC: _always,
}
"""For each timer of a member, a function that returns True if the member is to be removed."""

GONE: dict[TimerKind, Gone] = {
    TimerKind.SESSION: Gone.EXPIRED,
    TimerKind.REVOCATION: Gone.UNREVOKED,
    TimerKind.REJOIN: Gone.EVICTED,
    TimerKind.RESYNC: Gone.SILENT,
}
"""For each timer of a member, the way in which the member is gone."""
