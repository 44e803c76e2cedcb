"""A simulated producer that commits a group's offsets in transactions, and the coordinator that ends them.

It is honest: it commits only in an open transaction, and the next one begins when the last one's marker is
acknowledged. Its coordinator sends a marker until it is acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kshim.coordination.groups.refusals import StableOffsetFetch
from schemas.error_code import ErrorCode
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.end_txn_marker import EndTxnMarker

if TYPE_CHECKING:
    from tests.simulation.groups.client import Client
    from tests.simulation.groups.world import World

TOPIC = "another"
"""A topic for which others commit too, without a transaction."""
PARTITIONS = 3
RETRY_MS = 300


@dataclass(eq=False)
class Transactor:
    """One producer."""

    world: World
    name: str
    group_id: str
    producer_id: int
    bumps: bool
    """Its coordinator gives each transaction an epoch of its own (KIP-890)."""
    epoch: int = 0
    coordinator_epoch: int = 0
    """The epoch of the transaction coordinator that ended the last transaction."""
    stalled_until_ms: int = 0
    is_open: bool = False
    is_retired: bool = False
    _offset: int = 0
    _marker: EndTxnMarker | None = None

    def act(self) -> None:
        """Commit, look, or end the transaction; repeat after a while."""
        chance = self.world.chance
        is_stalled = self.world.clock.now_ms < self.stalled_until_ms
        if self._marker is None and not self.is_retired and not is_stalled:
            act = chance.choice((self.commit, self.commit, self.commit, self.fetch, self.end))
            act()
        if not self.is_retired:
            self.world.clock.after(chance.choice((50, 400, 2_000, 9_000)), self.act)

    def commit(self) -> None:
        """Commit without a member's identity, or as a member of the group."""
        self.is_open = True
        live = self.world.live(self.group_id)
        member = self.world.chance.choice(live) if live and self.world.chance.random() < 0.5 else None
        self.world.submit_to_leader(self.group_id, self.name, self.request(member), 5)

    def request(self, member: Client | None = None, epoch: int | None = None) -> TxnOffsetCommitRequest:
        """The next commit, of one partition or of several."""
        self._offset += 1
        indexes = self.world.chance.choice(((0,), (1,), (0, 2)))
        partitions = tuple(
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=1_000 * self.producer_id + self._offset
            )
            for index in indexes
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
        )
        if member is None:
            return request
        return TxnOffsetCommitRequest(
            transactional_id=request.transactional_id,
            group_id=request.group_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.profile.group_instance_id,
            topics=request.topics,
        )

    def fetch(self) -> None:
        """Fetch the stable offsets of all that the group has committed."""
        request = OffsetFetchRequestGroup(group_id=self.group_id, topics=None)
        self.world.submit_to_leader(self.group_id, self.name, StableOffsetFetch(request), 9)

    def end(self) -> None:
        """Commit or abort the transaction: the coordinator sends the marker until that is answered."""
        if self.is_open and self._marker is None:
            self.is_open = False
            self._marker = EndTxnMarker(
                self.producer_id,
                self.epoch + self.bumps,
                self.world.chance.random() < 0.6,
                self.coordinator_epoch + (self.world.chance.random() < 0.3),
                self.world.clock.now_ms,
            )
            self._send()

    def _send(self) -> None:
        if self._marker is not None:
            self.world.end_transaction(self, self._marker)
            self.world.clock.after(RETRY_MS, self._send)

    def ended(self, marker: EndTxnMarker, answer: Any) -> None:
        """The marker was answered."""
        if answer == ErrorCode.NONE and marker is self._marker:
            self._marker = None
            self.epoch, self.coordinator_epoch = marker.producer_epoch, marker.coordinator_epoch

    def retire(self) -> None:
        """Begin no further transaction."""
        self.is_retired = True
        self.end()

    @property
    def is_at_rest(self) -> bool:
        return not self.is_open and self._marker is None
