"""Invariants of every decision, and of what clients hold beside what the group says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kshim.coordination.decision import Decision
from kshim.coordination.groups.consumer.member import GOES_AWAY
from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.hard_state import HardState
from schemas.internal_topics.consumer_group_log import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from tests.coordination.groups.consumer.world import check_owners, facts

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.client import Client

Partition = tuple[Any, int]


class Checks:
    """Remembers what the next decision must agree with."""

    def __init__(self) -> None:
        self._epoch = 0
        self._loads = 0

    def loaded(self, loaded: HardState, again: HardState) -> None:
        """A reloaded group is that of the journal."""
        self._is_same(loaded, again)
        self._loads += 1
        groups = list(loaded.consumer.groups.values())
        self._epoch = groups[0].epoch if groups else 0

    def decided(self, shard: Any, decision: Decision, mirror: HardState) -> None:
        """A restart now would bring back the groups as they are; no partition has two owners; no epoch goes
        back."""
        for key, value in decision.records:
            if isinstance(key, ConsumerGroupMetadataKey):
                if value is None:
                    self._epoch = 0
                    continue
                assert isinstance(value, ConsumerGroupMetadataValue)
                assert value.epoch >= self._epoch, f"the epoch goes back from {self._epoch}: {value}"
                self._epoch = value.epoch
        if decision.records:
            self._is_same(shard.hard_state, mirror)
        assert shard.groups.keys().isdisjoint(shard.consumer.groups), "a group is of two kinds"
        for group in shard.consumer.groups.values():
            check_owners(group)
            assert group.parked.keys() <= group.members.keys(), "a heartbeat is parked for a stranger"
            for member in group.members.values():
                assert member.epoch <= group.epoch, f"{member} is ahead of epoch {group.epoch}"

    def held(self, shard: Any, topics: Topics, clients: Iterable[Client]) -> None:
        """A member that is not fenced holds only what the group gives it, so no two of them hold the same.

        Partitions of deleted topics do not count: a conversion drops them. Nor does a classic member count
        before a SyncGroup of it succeeds: it may have joined anew, and twice, with what it had before its
        session ended. So may one whose classic group rebalanced twice, which forgets the assignments, as in
        Kafka, and was then converted.
        """
        for group in shard.consumer.groups.values():
            for client in clients:
                member = group.members.get(client.member_id)
                if member is None or client.epoch <= 0 or member.epoch == GOES_AWAY:
                    continue
                if client.is_joining and member.previous_epoch == 0:
                    continue  # its session had ended, and it does not know yet that it is a new member
                if client.epoch > member.epoch:  # a crash loses a classic generation before its SyncGroup
                    may_go_back = client.profile.is_classic and self._loads > 1
                    assert may_go_back, f"{client.name}: epoch {client.epoch} goes back: {member}"
                if client.awaits_assignment:
                    continue
                if client.epoch not in (member.epoch, member.previous_epoch):
                    continue
                may_hold = {
                    (topic_id, partition)
                    for held in (member.assigned, member.revoking)
                    for topic_id, partitions in held.items()
                    for partition in partitions
                }
                more = {each for each in client.owned - may_hold if topics.with_id(each[0]) is not None}
                assert not more, f"{client.name} holds {more}, which is not its own any more"

    @staticmethod
    def _is_same(state: HardState, other: HardState) -> None:
        assert state.groups == other.groups
        assert {key: dict(each) for key, each in state.offsets.items()} == {
            key: dict(each) for key, each in other.offsets.items()
        }
        ours, theirs = state.consumer.groups, other.consumer.groups
        assert ours.keys() == theirs.keys()
        for group_id, group in ours.items():
            assert facts(group) == facts(theirs[group_id])
