"""One member of a consumer group, as its records describe it: a value, so a change makes a new one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from kshim.coordination.groups.consumer.partitions import (
    HOLDS_NOTHING,
    Held,
    from_current,
    to_current,
)
from kshim.coordination.groups.consumer.topic_names import in_record, topic_names
from schemas.internal_topics.consumer_group_log import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

JOINS = 0
"""The epoch in the heartbeat of a member that joins."""
LEAVES = -1
"""The epoch in the heartbeat of a member that leaves."""
GOES_AWAY = -2
"""The epoch in the heartbeat of a static member that will come back, and its own epoch until then."""


class MemberState(IntEnum):
    """Where a member stands between what it has and what it is to have; the numbers are those in the log."""

    STABLE = 0
    """It has its target, as far as others do not hold parts of it."""
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others still hold."""
    UNKNOWN = 127
    """Any other number in the log, from a later version of Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Member:
    """A member; timeouts in ms."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    regex: str = ""
    """Its subscription by a regular expression; empty without one."""
    server_assignor: str | None = None
    assigned: Held = field(default_factory=lambda: HOLDS_NOTHING)
    revoking: Held = field(default_factory=lambda: HOLDS_NOTHING)
    """Partitions that it has been asked to give up."""
    classic: ClassicMemberMetadata | None = None
    """None if it speaks the consumer protocol."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """True if nothing is left to do on the way to the target of `epoch`."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def at_epoch(self, epoch: int) -> Member:
        """The member in another epoch; the one that it had becomes the previous one."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch)

    def to_metadata(self) -> ConsumerGroupMemberMetadataValue:
        """The record of its subscription."""
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=in_record(self.topic_names),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def with_metadata(self, stored: ConsumerGroupMemberMetadataValue) -> Member:
        """The member with the subscription of a record, which replaces all that the member had of it."""
        return replace(
            self,
            instance_id=stored.instance_id,
            rack_id=stored.rack_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            topic_names=topic_names(stored.subscribed_topic_names),
            regex=stored.subscribed_topic_regex or "",
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            server_assignor=stored.server_assignor,
            classic=stored.classic_member_metadata,
        )

    def to_current(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """The record of its epoch and its partitions."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=to_current(self.assigned),
            partitions_pending_revocation=to_current(self.revoking),
        )

    def with_current(self, stored: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        """The member with the epoch and the partitions of a record."""
        return replace(
            self,
            epoch=stored.member_epoch,
            previous_epoch=stored.previous_member_epoch,
            state=MemberState(stored.state),
            assigned=from_current(stored.assigned_partitions, stored.member_epoch),
            revoking=from_current(stored.partitions_pending_revocation, stored.member_epoch),
        )

    def without_current(self) -> Member:
        """The member after the tombstone of its epoch and its partitions."""
        return replace(
            self,
            epoch=LEAVES,
            previous_epoch=LEAVES,
            assigned=HOLDS_NOTHING,
            revoking=HOLDS_NOTHING,
        )
