"""A member of a group in a scenario, on its own connection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from integration.differential.differences.guest import Guest, error_of
from integration.support.awaiting import wait_until
from schemas.api_key import ApiKey
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest

FIND, JOIN, SYNC, HEARTBEAT, LEAVE, DESCRIBE = 1, 9, 4, 4, 5, 5
"""The request versions."""
LONG_MS = 60_000
PATIENCE_S = 20
SUBSCRIPTION = encode_subscription(ConsumerProtocolSubscription(topics=("t",)))


def coordinated(guest: Guest, group: str = "g") -> str:
    """Wait until the coordinator has loaded the group; returns the group's id."""
    group_id = guest.name(group)
    guest.unheard(FIND, FindCoordinatorRequest(key=group_id))
    asked = DescribeGroupsRequest(groups=(group_id,))
    wait_until(lambda: not guest.unheard(DESCRIBE, asked).groups[0].error_code, PATIENCE_S, "the coordinator")
    return group_id


def protocol(metadata: bytes) -> JoinGroupRequestProtocol:
    return JoinGroupRequestProtocol(name="range", metadata=metadata)


class Member:
    """A client that joins a group on its own connection."""

    def __init__(self, guest: Guest, name: str, group: str = "g", **fields: Any) -> None:
        """fields: fields of its JoinGroup."""
        self.guest = guest
        self.name = name
        self.id = ""
        """The id that the server gave."""
        self.generation = -1
        """The generation that the server gave last."""
        self._request = replace(
            JoinGroupRequest(
                group_id=guest.name(group),
                session_timeout_ms=LONG_MS,
                rebalance_timeout_ms=LONG_MS,
                member_id="",
                protocol_type="consumer",
                protocols=(protocol(SUBSCRIPTION),),
            ),
            **fields,
        )

    def take_id(self) -> None:
        """Send the first JoinGroup of a dynamic member, and keep the id that it is given."""
        answer = self.guest.answer(JOIN, self._request, via=self.name)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
        self.id = answer.member_id

    def send_join(self, **fields: Any) -> None:
        request = replace(self._request, member_id=self.id, **fields)
        self.guest.send(JOIN, request, via=self.name)

    def hear_join(self) -> Any:
        """The answer to JoinGroup, or why there is none."""
        answer = self.guest.next_answer(JOIN, ApiKey.JOIN_GROUP, via=self.name)
        if not isinstance(answer, str) and not answer.error_code:
            self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self) -> str:
        """Sync without an assignment; returns the error."""
        request = SyncGroupRequest(
            group_id=self._request.group_id,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self._request.group_instance_id,
        )
        return self.guest.error(SYNC, request, via=self.name)

    def send_heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._request.group_id, generation_id=self.generation, member_id=self.id
        )
        self.guest.send(HEARTBEAT, request, via=self.name)

    def hear_heartbeat(self) -> str:
        """The error in the answer to Heartbeat, or why there is no answer."""
        return error_of(self.guest.next_answer(HEARTBEAT, ApiKey.HEARTBEAT, via=self.name))

    def beat(self) -> str:
        """The error in the answer to a Heartbeat that is sent now."""
        self.send_heartbeat()
        return self.hear_heartbeat()

    def enter(self) -> None:
        """Become the only member of a stable group."""
        if self._request.group_instance_id is None:
            self.take_id()
        self.send_join()
        answer = self.hear_join()
        assert not answer.error_code, answer
        assert self.sync() == "NONE"

    def send_leave(self) -> None:
        member = MemberIdentity(member_id=self.id, group_instance_id=self._request.group_instance_id)
        request = LeaveGroupRequest(group_id=self._request.group_id, members=(member,))
        self.guest.send(LEAVE, request, via=self.name)
