"""One member of a classic group: its protocols, its assignment, and its parked requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.internal_topics.group_metadata_log import MemberMetadata
from schemas.messages.join_group import JoinGroupRequestProtocol


@dataclass(slots=True)
class Member:
    """A member of a group, by its member id."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    """The id of the client that is the member now."""
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    holds: bytes = b""
    """The last assignment that was sent to the member."""
    is_new: bool = False
    """True until the member's first join phase completes; until then its parked JoinGroup may time out."""
    parked_join: int | None = None
    """The token of its parked JoinGroup, if there is one."""
    parked_sync: int | None = None
    """The token of its parked SyncGroup, if there is one."""
    parked_heartbeat: int | None = None
    """The token of its parked Heartbeat, if there is one."""
    heartbeat_at_ms: int | None = None
    """When its last heartbeat of a kind that may be parked came; None before the generation's first one."""
    first_client: tuple[str, str] | None = None
    """The id and host of the client that was the first one with this group instance id, if another has taken
    its place. Apache Kafka stores and describes that one.
    """
    timer: TimerKey = field(init=False)
    heartbeat_timer: TimerKey = field(init=False)

    def __post_init__(self) -> None:
        self.rename(self.member_id)

    def rename(self, member_id: str) -> None:
        """Change the member id, and so the keys of the timers; timers that are armed under the
        old id stay.
        """
        self.member_id = member_id
        self.timer = TimerKey(TimerKind.MEMBER, self.group_id, member_id)
        self.heartbeat_timer = TimerKey(TimerKind.HEARTBEAT, self.group_id, member_id)

    def is_now(self, client_id: str, client_host: str) -> None:
        """Note that another client is the member from now on."""
        self.first_client = self.described_client
        self.client_id, self.client_host = client_id, client_host

    @property
    def described_client(self) -> tuple[str, str]:
        """The client id and host that DescribeGroups and the group's record have."""
        return self.first_client or (self.client_id, self.client_host)

    @property
    def is_static(self) -> bool:
        """True if the member has a group instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """True if the session must not expire: the member cannot send heartbeats while its
        request is parked.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """The metadata that the member sent for `protocol_name`; empty if it does not offer that protocol."""
        return self.protocols.metadata(protocol_name)

    def to_metadata(self, protocol_name: str | None) -> MemberMetadata:
        """The member's entry in the group's record."""
        client_id, client_host = self.described_client
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=client_id,
            client_host=client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=self.assignment,
        )

    @classmethod
    def from_metadata(cls, group_id: str, protocol_name: str | None, stored: MemberMetadata) -> Member:
        """The member that a group's record describes. It offers the chosen protocol alone: no other is
        stored.
        """
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
