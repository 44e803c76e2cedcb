"""One member of a classic group: what it offers, what it was given, and its parked requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.internal_topics.group_metadata_log import MemberMetadata
from schemas.messages.join_group import JoinGroupRequestProtocol


@dataclass(slots=True)
class Member:
    """A member id and all that belongs to it."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    holds: bytes = b""
    """The assignment that it was given last."""
    is_new: bool = False
    """True until the first join phase that it takes part in completes: its parked join may then time out."""
    parked_join: int | None = None
    """The token of its JoinGroup, while that is held without an answer."""
    parked_sync: int | None = None
    """The token of its SyncGroup, while that is held without an answer."""
    parked_heartbeat: int | None = None
    """The token of its Heartbeat, while that is held without an answer."""
    heartbeat_at_ms: int | None = None
    """When its last heartbeat came that may be parked; None before the first one."""
    timer: TimerKey = field(init=False)
    heartbeat_timer: TimerKey = field(init=False)

    def __post_init__(self) -> None:
        self.rename(self.member_id)

    def rename(self, member_id: str) -> None:
        """Go by another id from now on; the timers of the old one are not touched."""
        self.member_id = member_id
        self.timer = TimerKey(TimerKind.MEMBER, self.group_id, member_id)
        self.heartbeat_timer = TimerKey(TimerKind.HEARTBEAT, self.group_id, member_id)

    @property
    def is_static(self) -> bool:
        """Whether it has a group instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether its session must not expire: while its request is parked it cannot send heartbeats."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """The subscription bytes that it sent for `protocol_name`; empty when it does not offer it."""
        return self.protocols.metadata(protocol_name)

    def to_metadata(self, protocol_name: str | None) -> MemberMetadata:
        """The member as it stands in the group's record."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=self.assignment,
        )

    @classmethod
    def from_metadata(cls, group_id: str, protocol_name: str | None, stored: MemberMetadata) -> Member:
        """The member that a group's record describes; all it is known to offer is the chosen protocol."""
        unset = stored.rebalance_timeout == -1
        return cls(
            group_id=group_id,
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=stored.session_timeout if unset else stored.rebalance_timeout,
            protocols=Protocols.of(
                (JoinGroupRequestProtocol(name=protocol_name or "", metadata=stored.subscription),)
            ),
            assignment=stored.assignment,
            holds=stored.assignment,
        )
