"""A consumer group: what its records say of it. Only `replay` changes that.

What is not in records is soft: parked requests, what the next refresh waits for. It does not survive a
restart.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.computing import Computation
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.partition_epochs import PartitionEpochs
from kshim.coordination.groups.consumer.partitions import NOTHING, Assignment
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.searching import Search
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.subscriptions import Subscriptions, Watch
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.java import string_hash
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_EPOCH = 1
"""The group epoch of a new group, and the epoch of its empty target (KIP-1263)."""
NO_EPOCH = -1


def watch_nothing(topic: str | None, is_subscribed: bool) -> None:
    """The `watch` of a group whose topics nobody needs to find."""


class Parked(NamedTuple):
    """A heartbeat whose answer waits."""

    caller: Caller
    request: ConsumerGroupHeartbeatRequest
    """What it is answered as: a request of the same member that says nothing."""
    visible: Visible
    """Returns those of some topics that its sender may see."""
    patience: Patience
    until_ms: int
    """When it is answered at the latest."""


class ConsumerGroup:
    """One group of the consumer protocol."""

    __slots__ = (
        "_settled",
        "assigned_ms",
        "assignment_epoch",
        "computation",
        "epoch",
        "failed_epoch",
        "fenced",
        "group_id",
        "has_old_metadata",
        "hash_codes",
        "members",
        "metadata_hash",
        "parked",
        "partition_epochs",
        "quiet_until_ms",
        "rebalance",
        "refresh_at",
        "search",
        "search_at_ms",
        "static_members",
        "subscriptions",
        "targets",
        "to_look_at",
        "visible",
    )

    def __init__(self, group_id: str, watch: Watch = watch_nothing) -> None:
        """watch: see `Subscriptions`."""
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        """When the target was computed; 0 if it was not."""
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.hash_codes: dict[str, int] = {}
        """The `string_hash` of each member's id, by which assignors sort."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.targets: dict[str, Assignment] = {}
        self.partition_epochs = PartitionEpochs()
        self.subscriptions = Subscriptions(watch)
        self.has_old_metadata = False
        """True if the log holds a record of kind 4, which has to be deleted."""
        self.refresh_at: tuple[int, int] | None = None
        """Soft: when to look at the topics again in ms, and the group epoch when this was set; None stands
        for at once.
        """
        self.failed_epoch = NO_EPOCH
        """Soft: the last group epoch whose target could not be computed."""
        self.fenced: dict[str, str] = {}
        """Soft: the members that an administrator fenced, by the id of the member now in their place."""
        self.parked: dict[str, Parked] = {}
        """Soft: the heartbeats whose answers wait, by member id."""
        self.to_look_at: dict[str, None] = {}
        """Soft: the members that may have to hear something, and were not looked at yet."""
        self.quiet_until_ms = 0
        """Soft: until then parked heartbeats are not answered with news, as a member has just left."""
        self.search: Search | None = None
        """Soft: the search for matches of its members' expressions that is under way."""
        self.search_at_ms = 0
        """Soft: when the next search for matches may begin, if new topics are its cause."""
        self.visible: Visible | None = None
        """Soft: the topics that the member may see whose heartbeat came last; None after a load."""
        self.computation: Computation | None = None
        """Soft: the computation of a target that is under way; given up when another target is written."""
        self.rebalance: Rebalance | None = None
        """Soft: the record of the rebalance under way; see `recording`."""
        self._settled: Counter[int] = Counter()
        """How many Stable members there are in each epoch."""

    @property
    def state(self) -> GroupState:
        """See `GroupState`."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        is_stable = self._settled[self.assignment_epoch] == len(self.members)
        return GroupState.STABLE if is_stable else GroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member with an instance id, if there is one."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: Member) -> Assignment:
        """The target of a member; nothing if none was computed for it."""
        return self.targets.get(member.member_id, NOTHING)

    def subscribed_topics(self) -> Subscriptions:
        """The topics that its members subscribe to."""
        return self.subscriptions

    def needs_refresh(self, now_ms: int) -> bool:
        """True if the topics are to be looked at again: after a load, a change of a topic, or a write that
        was lost.
        """
        if self.refresh_at is None:
            return True
        at_ms, epoch = self.refresh_at
        return now_ms >= at_ms or self.epoch < epoch

    def put_member(self, member: Member) -> None:
        """Add a member, or put it in place of the one with its id. Raises StillOwned."""
        old = self.members.get(member.member_id)
        self.partition_epochs.change(old, member)
        self.members[member.member_id] = member
        if old is None:
            self.hash_codes[member.member_id] = string_hash(member.member_id)
        self._note(old, member)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it exists."""
        old = self.members.pop(member_id, None)
        if old is not None:
            del self.hash_codes[member_id]
            self.fenced.pop(member_id, None)
            self.partition_epochs.change(old, None)
            self._note(old, None)

    def _note(self, old: Member | None, new: Member | None) -> None:
        self.subscriptions.change(old, new)
        if old is not None:
            if old.state is MemberState.STABLE:
                self._settled[old.epoch] -= 1
                if not self._settled[old.epoch]:
                    del self._settled[old.epoch]
            is_gone = new is None or new.instance_id != old.instance_id
            instance_id = old.instance_id
            if is_gone and instance_id is not None and self.static_members.get(instance_id) == old.member_id:
                del self.static_members[instance_id]
        if new is not None:
            if new.state is MemberState.STABLE:
                self._settled[new.epoch] += 1
            if new.instance_id is not None:
                self.static_members[new.instance_id] = new.member_id
