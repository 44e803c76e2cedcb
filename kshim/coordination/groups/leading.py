"""What happens to a classic group when its shard begins to be led, and when it is given up."""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.parked import answer_heartbeats, refuse_sync
from kshim.coordination.groups.rebalance import prepare_rebalance
from kshim.coordination.groups.recording import gives_way
from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Trigger
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataValue
from schemas.messages.join_group import JoinGroupResponse


def begin_to_lead(draft: Draft, group: ClassicGroup, stored: GroupMetadataValue | None) -> None:
    """Give each member a session. A group above `group.max.size` rebalances, and so does one whose members
    had not joined yet since it was downgraded.

    stored: the group's record, if it has one.
    """
    if group.members:
        group.loaded_ms = draft.now_ms
    for member in group.members.values():
        draft.restart_session(member)
    if len(group.members) > draft.settings.group_max_size:
        prepare_rebalance(draft, group, Trigger.GROUP_TOO_LARGE, [])
    elif group.members and stored is not None and stored.leader is None:
        prepare_rebalance(draft, group, Trigger.PROTOCOL_CHANGED, [])


def give_up(draft: Draft, group: ClassicGroup) -> None:
    """Cancel the timers of the group, and answer its parked requests NOT_COORDINATOR."""
    draft.cancel_all(group)
    for member in group.members.values():
        if member.parked_join is not None:
            refusal = JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
            draft.reply(member.parked_join, refusal)
        refuse_sync(draft, member, ErrorCode.NOT_COORDINATOR)
    answer_heartbeats(draft, group, ErrorCode.NOT_COORDINATOR)
    gives_way(draft, group)
    group.transition_to(State.DEAD, draft.now_ms)
