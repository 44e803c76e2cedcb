"""Requests that are refused: an error and, mostly, a message, both of Kafka's; and who sent them."""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.rebalance_record import Who
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

LONGEST_SHOWN = 10_000
"""How many characters of a group id a message may repeat; the message is at most 32767 bytes long."""


class Refused(Exception):
    """Raised before anything has changed."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


def sender(caller: Caller, member_id: str, instance_id: str | None) -> Who:
    """The member that sends a request."""
    return Who(member_id, caller.client_id, caller.client_host, instance_id)


def refusal(refused: Refused) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused."""
    return ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def no_group(group_id: str, classic: ClassicGroup | None, *, joins_or_stays: bool) -> Refused:
    """The refusal of a request about a group that is not a consumer group. classic: the classic group of that
    id, if there is one.
    """
    name = group_id[:LONGEST_SHOWN]
    if classic is not None:
        message = f"Group {name} is not a consumer group."
    else:
        message = f"{'Consumer group' if joins_or_stays else 'Group'} {name} not found."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)
