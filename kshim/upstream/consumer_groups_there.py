"""Passes heartbeats of the consumer protocol (KIP-848) on to the upstream, which serves such groups then.

The first heartbeat of a member hands the group over to the upstream, if kshim has it (`moving_out`). A member
that kshim served before it was told to pass the protocol on has to join again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.coordination.groups.consumer.member import JOINS
from kshim.network.dispatch import Reply
from kshim.turns.promise import run
from kshim.upstream.asked import Answer, Asked, Decoded, decode, encode
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from kshim.upstream.moving_in import MovingIn
    from kshim.upstream.moving_out import MovingOut
    from kshim.upstream.one_side import OneSide
    from kshim.upstream.other_groups import OtherGroups
    from kshim.upstream.their_groups import TheirGroups

WHY = {
    ErrorCode.GROUP_ID_NOT_FOUND: "Group {} has members of the classic protocol at kshim.",
}


class ConsumerGroupsThere:
    """Answers ConsumerGroupHeartbeat."""

    def __init__(
        self,
        one_side: OneSide,
        moving_in: MovingIn,
        moving_out: MovingOut,
        others: OtherGroups,
        theirs: TheirGroups,
    ) -> None:
        self._one_side = one_side
        self._moving_in = moving_in
        self._moving_out = moving_out
        self._others = others
        self._theirs = theirs

    def answer(self, asked: Asked) -> Answer:
        """Pass a heartbeat on. Only the kshim that coordinates the group lets members join: another one does
        not know if the group is kshim's.
        """
        decoded = asked.decoded or decode(asked)
        request = decoded[1]
        is_ours = self._one_side.knows(request.group_id)
        if request.member_epoch != JOINS:
            if is_ours:
                return _refusal(decoded, ErrorCode.UNKNOWN_MEMBER_ID)
            return run(self._passed(asked, request.group_id))
        if is_ours is None:
            return _refusal(decoded, self._one_side.refusal(request.group_id))
        return run(self._join(asked, decoded))

    async def _join(self, asked: Asked, decoded: Decoded) -> Reply:
        group_id = decoded[1].group_id
        if self._one_side.knows(group_id):
            error = await self._moving_out.hand_over(group_id)
            if error is not ErrorCode.NONE:
                return _refusal(decoded, error)
        self._moving_in.forget(group_id)
        return await self._passed(asked, group_id)

    async def _passed(self, asked: Asked, group_id: str) -> Reply:
        self._theirs.note(group_id)
        return await self._others.passed(asked, (group_id,))


def _refusal(decoded: Decoded, error: ErrorCode) -> Reply:
    header, request = decoded
    why = WHY.get(error)
    message = why and why.format(request.group_id)
    return encode(header, ConsumerGroupHeartbeatResponse(error_code=error, error_message=message))
