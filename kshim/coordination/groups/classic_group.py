"""A classic group: its members, its state, and the bookkeeping that keeps its counts true.

This is the live group. Only a snapshot of it survives a restart: the metadata record that is written when a
leader's assignments are accepted or the group becomes empty. The other modules of this package decide when to
change a group. The operations of this module keep its members, protocol counts, static ids and leader
consistent; each is O(1) in the number of members unless its docstring says otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from kshim.coordination.groups.member import Member
from kshim.coordination.groups.offered import SEPARATOR, Offered, Protocols, split_names
from kshim.coordination.groups.rebalance_record import Departed, Rebalance
from kshim.coordination.groups.replaced import Replaced
from kshim.coordination.groups.states import TRANSITIONS, State
from kshim.coordination.groups.subscriptions import topics_of
from kshim.coordination.java import in_order_of_a_hash_map, string_hash
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataValue

CONSUMER = "consumer"
"""The protocol type whose metadata the coordinator can read."""


@dataclass(slots=True)
class InitialDelay:
    """How long an empty group waits for more members before its first join phase ends (KIP-134)."""

    delay_ms: int
    remaining_ms: int
    member_added: bool = False


@dataclass(slots=True)
class ClassicGroup:
    """One group of the classic protocol."""

    group_id: str
    state_timestamp_ms: int
    state: State = State.EMPTY
    generation: int = 0
    """0 until a join phase has completed."""
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by group instance id."""
    pending_join: set[str] = field(default_factory=set)
    """Member ids that were handed out with MEMBER_ID_REQUIRED, and with which nobody has joined yet."""
    pending_sync: set[str] = field(default_factory=set)
    """Ids of the members that completed the join phase and have not sent SyncGroup in this generation."""
    awaiting_join: int = 0
    """How many members have a parked JoinGroup."""
    subscriptions: tuple[bytes, ...] | None = None
    """The metadata that the members of the last generation sent for its protocol; None before the first
    generation.
    """
    initial_delay: InitialDelay | None = None
    rebalance: Rebalance | None = None
    """The rebalance under way and why it started."""
    departed: Departed = field(default_factory=Departed)
    replaced: Replaced = field(default_factory=Replaced)
    joined_ms: int = 0
    """When the last join phase ended."""
    loaded_ms: int | None = None
    """When its coordinator loaded it; None if it was not loaded, or has rebalanced since."""
    offered: Offered = field(default_factory=Offered)
    """The names of the protocols that its members offer."""

    # ---- state

    def transition_to(self, state: State, now_ms: int) -> None:
        """Change the state; no other code does."""
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state, self.state_timestamp_ms = state, now_ms

    @property
    def has_all_members_joined(self) -> bool:
        """True if every member has a parked JoinGroup, and no id is left that a client may
        still join with.
        """
        return len(self.members) == self.awaiting_join and not self.pending_join

    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of its members, 0 without members. O(members)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ---- members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add `member`; the first member decides the protocol type, and leads."""
        assert member.member_id not in self.members, member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_join.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.offered.add(member.protocols)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member and return it, or drop a pending id and return None. If the member led, another one
        leads.
        """
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self.offered.remove(member.protocols)
        if member.parked_join is not None:
            self.awaiting_join -= 1
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member a new id; it keeps its place as leader and whether it still has to sync."""
        assert member.group_instance_id is not None
        old_id = member.member_id
        del self.members[old_id]
        member.rename(member_id)
        self.members[member_id] = member
        self.static_members[member.group_instance_id] = member_id
        if self.leader == old_id:
            self.leader = member_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(member_id)

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """Replace the protocols that `member` offers."""
        self.offered.add(protocols)
        self.offered.remove(member.protocols)
        member.protocols = protocols

    def static_member_id(self, group_instance_id: str | None) -> str | None:
        """The present member id of a group instance id; None if no member has this instance id."""
        return None if group_instance_id is None else self.static_members.get(group_instance_id)

    def validate(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """NONE if `member_id` is a member and the owner of its instance id, else the error (KIP-345)."""
        if group_instance_id is not None:
            owner = self.static_member_id(group_instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # ---- parked requests

    def park_join(self, member: Member, token: int) -> int | None:
        """Park a JoinGroup of `member`; return the token of the parked one that it replaces, if any."""
        older, member.parked_join = member.parked_join, token
        if older is None:
            self.awaiting_join += 1
        return older

    def take_join(self, member: Member) -> int | None:
        """Take the parked JoinGroup from `member` and return its token; None if none is parked."""
        parked, member.parked_join = member.parked_join, None
        if parked is not None:
            self.awaiting_join -= 1
        return parked

    # ---- protocols

    def supports(self, protocol_type: str, names: bytes) -> bool:
        """True if a member with this protocol type and these protocol names may join: the type must be the
        group's, and all members must offer one of the names.
        """
        has_names = len(names) > len(SEPARATOR)
        if self.state is State.EMPTY:
            return bool(protocol_type) and has_names
        return protocol_type == self.protocol_type and (
            self.offered.is_common(names) if self.members else has_names
        )

    def select_protocol(self) -> str:
        """The protocol with the most votes. O(members).

        In a tie the protocol that comes first in Kafka's hash map of votes wins.
        """
        votes = self.votes()
        return max(in_order_of_a_hash_map(votes, string_hash), key=votes.__getitem__)

    def votes(self) -> Counter[str]:
        """The number of votes by protocol: each member votes for the first of its protocols that all members
        offer. O(members).
        """
        candidates = set(split_names(self.offered.common()))
        votes: Counter[str] = Counter()
        chosen: dict[bytes, str] = {}
        for member in self.members.values():
            names = member.protocols.names
            if names not in chosen:
                vote = next(name for name in split_names(names) if name in candidates)
                chosen[names] = vote.decode()
            votes[chosen[names]] += 1
        return votes

    def subscribed_topics(self) -> Collection[str] | None:
        """The topics that the members of the last generation consume, even if all have left since.

        None means that the topics cannot be known, and counts as every topic: no generation has formed yet,
        or `topics_of` cannot read the subscriptions. Groups of another protocol type subscribe to no topic.
        O(members), and reads their subscriptions.
        """
        if self.protocol_type != CONSUMER:
            return ()
        return None if self.subscriptions is None else topics_of(self.subscriptions)

    def keep_subscriptions(self) -> None:
        """Keep the subscriptions of a new generation's members until the next generation begins.
        O(members).
        """
        self.subscriptions = tuple(member.metadata(self.protocol_name) for member in self.members.values())

    # ---- the record

    def to_metadata(self) -> GroupMetadataValue:
        """The value of the group's record, with the members' present assignments. O(members)."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp_ms,
            members=tuple(member.to_metadata(self.protocol_name) for member in self.members.values()),
        )

    @classmethod
    def from_metadata(cls, group_id: str, stored: GroupMetadataValue) -> ClassicGroup:
        """The group that a record describes: Stable if it has members, else Empty. Rebalances are
        not stored.
        """
        group = cls(
            group_id=group_id,
            state_timestamp_ms=stored.current_state_timestamp,
            state=State.STABLE if stored.members else State.EMPTY,
            generation=stored.generation,
            protocol_type=stored.protocol_type or None,
            protocol_name=stored.protocol,
            leader=stored.leader,
        )
        for entry in stored.members:
            member = Member.from_metadata(group_id, stored.protocol, entry)
            group.add(member, stored.protocol_type)
        if stored.generation or not stored.members:
            group.keep_subscriptions()
        return group
