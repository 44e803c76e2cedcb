"""One pass over the partitions of a Fetch: what each is answered, and how much that is in all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kshim.api.leadership import NO_EPOCH, end_of_epoch, fault_in_leadership
from kshim.cluster import Partition
from kshim.context import Broker
from kshim.fetch_sessions import CachedPartition
from kshim.storage.interfaces import Offsets
from schemas.error_code import ErrorCode
from schemas.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from schemas.record_batch import batches, decode_header

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FIRST_VERSION_FROM_ANY_REPLICA = 11
FIRST_VERSION_WITH_CURRENT_LEADER = 16
SENT_AWAY = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class PartitionRead(NamedTuple):
    """is_behind: there are records from its position on, sent or not."""

    cached: CachedPartition
    data: PartitionData
    is_behind: bool = False


@dataclass(slots=True)
class Position:
    """How far the records of a partition have been counted. left_bytes: how many more it may add to the
    answer. high_watermark: as it was when the partition was last looked at.
    """

    next_offset: int
    left_bytes: int
    high_watermark: int

    def count(self, records: bytes, end: int) -> int:
        """The bytes that `records`, read from `next_offset` on, are worth, when there are some up to `end`.

        Where they end before, the next batch did not fit: then the partition is worth all that it may add,
        else a Fetch whose min_bytes is no sum of whole batches would wait for nothing.
        """
        for batch in batches(records):
            self.next_offset = decode_header(batch).next_offset
        cut_short = self.next_offset < end
        counted = max(len(records), self.left_bytes) if cut_short else len(records)
        self.left_bytes = max(0, self.left_bytes - counted)
        return counted


@dataclass(slots=True)
class PartitionReads:
    """What is read in one pass.

    known: of partitions that were there when the request came; unknown: of the others, which Kafka answers
    last. bytes_read: of all; the first that has any may bring a batch larger than every limit. left_bytes:
    what all may still add. counted_bytes: what was read, as it counts towards min_bytes. positions: where
    those that were read were left. failed: one of the known had an error, which is answered at once; one that
    is unknown is no reason not to wait for the others. leaders: where clients were sent to.
    """

    broker: Broker
    api_version: int
    request: FetchRequest
    left_bytes: int = 0
    known: list[PartitionRead] = field(default_factory=list)
    unknown: list[PartitionRead] = field(default_factory=list)
    bytes_read: int = 0
    counted_bytes: int = 0
    positions: dict[CachedPartition, Position] = field(default_factory=dict)
    failed: bool = False
    leaders: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left_bytes = self._max_bytes

    @property
    def _max_bytes(self) -> int:
        return min(self.request.max_bytes, self.broker.config.fetch_max_bytes)

    @property
    def committed(self) -> bool:
        return self.request.isolation_level == READ_COMMITTED

    @property
    def missing_bytes(self) -> int:
        return min(self.request.min_bytes, self._max_bytes) - self.counted_bytes

    def read(self, partitions: Iterable[CachedPartition]) -> PartitionReads:
        """Look at each, in this order, and return all that was found."""
        for cached in partitions:
            found = self._find(cached)
            if isinstance(found, Partition) or found is ErrorCode.INCONSISTENT_TOPIC_ID:
                self._look(cached, found)
            else:
                self.unknown.append(PartitionRead(cached, refusal(cached, found, ())))
        self.unknown.sort(key=lambda read: read.data.error_code != ErrorCode.UNKNOWN_TOPIC_ID)
        return self

    def again(self, partitions: Iterable[CachedPartition]) -> PartitionReads:
        """The same after a while. Who was unknown stays so; who is unknown now has lost what it read from."""
        anew = PartitionReads(self.broker, self.api_version, self.request, unknown=self.unknown)
        unknown = {read.cached for read in self.unknown}
        for cached in partitions:
            if cached not in unknown:
                anew._look(cached, self._find(cached))
        return anew

    def _look(self, cached: CachedPartition, found: Partition | ErrorCode) -> None:
        if isinstance(found, Partition):
            cached.partition_no = found.partition_no
            read = self._read(cached, found)
        else:
            cached.partition_no = None
            read = PartitionRead(cached, refusal(cached, found))
        self.known.append(read)
        self.left_bytes = max(0, self.left_bytes - len(read.data.records or b""))
        self.failed = self.failed or bool(read.data.error_code) or read.data.diverging_epoch.epoch >= 0

    def position(self, cached: CachedPartition) -> Position:
        """Where a partition stands, also one that was not looked at because nothing of it was new."""
        known = self.positions.get(cached)
        if known is None:
            wanted = cached.wanted
            left_bytes = max(0, min(wanted.partition_max_bytes, self.left_bytes))
            known = Position(wanted.fetch_offset, left_bytes, cached.high_watermark)
            self.positions[cached] = known
        return known

    def _find(self, cached: CachedPartition) -> Partition | ErrorCode:
        """The partition as it is now. A topic id that was known once stands for the name it had."""
        topics, by_topic_id = self.broker.cluster.topics, cached.is_by_topic_id
        if cached.topic is None:
            named = self.broker.cluster.topic_by_id(cached.topic_id)
            if named is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            cached.topic = named.name
        topic = topics.get(cached.topic)
        partition = topic.partition(cached.wanted.partition) if topic else None
        if topic is None or partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if by_topic_id and topic.topic_id != cached.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        return partition

    def _read(self, cached: CachedPartition, partition: Partition) -> PartitionRead:
        fault = self._fault_in_request(cached, partition)
        if fault is not ErrorCode.NONE:
            return self._sent_away(cached, partition, fault)
        offsets = self.broker.log.offsets(partition.partition_no)
        diverging_epoch = self._diverging_epoch(cached, partition, offsets)
        if diverging_epoch is None or not _is_within(cached, offsets, diverging_epoch):
            return PartitionRead(cached, refusal(cached, ErrorCode.OFFSET_OUT_OF_RANGE))
        end = offsets.last_stable_offset if self.committed else offsets.high_watermark
        is_behind = diverging_epoch.epoch < 0 and cached.wanted.fetch_offset < end
        if is_behind and min(self.left_bytes, cached.wanted.partition_max_bytes) < 0:
            return PartitionRead(cached, refusal(cached, ErrorCode.UNKNOWN_SERVER_ERROR))
        left_bytes = max(0, min(self.left_bytes, cached.wanted.partition_max_bytes))
        position = Position(cached.wanted.fetch_offset, left_bytes, offsets.high_watermark)
        self.positions[cached] = position
        records = self._records(partition, position, end) if is_behind else b""
        data = PartitionData(
            partition_index=cached.wanted.partition,
            error_code=ErrorCode.NONE,
            high_watermark=offsets.high_watermark,
            last_stable_offset=offsets.last_stable_offset,
            log_start_offset=offsets.log_start_offset,
            diverging_epoch=diverging_epoch,
            aborted_transactions=self._aborted(cached, partition, records, end),
            records=records,
        )
        return PartitionRead(cached, data, is_behind)

    def _fault_in_request(self, cached: CachedPartition, partition: Partition) -> ErrorCode:
        """Why the partition is not read, whatever its log holds."""
        request = self.request
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # only consumers fetch from here
        any_replica = self.api_version >= FIRST_VERSION_FROM_ANY_REPLICA
        known_epoch = max(NO_EPOCH, cached.wanted.current_leader_epoch)
        return fault_in_leadership(self.broker, partition, known_epoch, any_replica=any_replica)

    def _sent_away(self, cached: CachedPartition, partition: Partition, error: ErrorCode) -> PartitionRead:
        """An error, and where to go instead (KIP-951)."""
        if self.api_version < FIRST_VERSION_WITH_CURRENT_LEADER or error not in SENT_AWAY:
            return PartitionRead(cached, refusal(cached, error))
        self.leaders.append(partition.leader)
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return PartitionRead(cached, refusal(cached, error, current_leader=leader))

    def _diverging_epoch(
        self, cached: CachedPartition, partition: Partition, offsets: Offsets
    ) -> EpochEndOffset | None:
        """Where the client's log and this one part (KIP-595); epoch -1 where they do not, as far as it says.

        None where this log knows nothing of the client's epoch.
        """
        wanted = cached.wanted
        if wanted.last_fetched_epoch < 0:
            return EpochEndOffset()
        epoch, end_offset = end_of_epoch(self.broker.log, partition, wanted.last_fetched_epoch)
        if epoch < 0 or wanted.fetch_offset < offsets.log_start_offset:
            return None
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return EpochEndOffset()

    def _records(self, partition: Partition, position: Position, end: int) -> bytes:
        start, limit = position.next_offset, position.left_bytes
        if limit == 0 and self.bytes_read:
            return b""
        records = self.broker.log.read(
            partition.partition_no, start, limit, min_one=not self.bytes_read, up_to=end
        )
        self.bytes_read += len(records)
        enough = self.request.min_bytes <= 1
        self.counted_bytes += len(records) if enough else position.count(records, end)
        return records

    def _aborted(
        self, cached: CachedPartition, partition: Partition, records: bytes, end: int
    ) -> tuple[AbortedTransaction, ...] | None:
        """The aborted transactions that have something to do with `records`.

        None where nobody asked, and, as in Kafka, where there are records that do not fit.
        """
        log, partition_no, start = self.broker.log, partition.partition_no, cached.wanted.fetch_offset
        if not self.committed or (not records and start < end):
            return None
        if not records or not log.aborted_transactions(partition_no, start, end):
            return ()
        for batch in batches(records):
            end = decode_header(batch).next_offset
        return tuple(
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.aborted_transactions(partition_no, start, end)
        )


def _is_within(cached: CachedPartition, offsets: Offsets, diverging_epoch: EpochEndOffset) -> bool:
    """A client whose log has parted from this one may well be behind its end."""
    start, end = offsets.log_start_offset, offsets.log_end_offset
    return diverging_epoch.epoch >= 0 or start <= cached.wanted.fetch_offset <= end


def refusal(
    cached: CachedPartition,
    error: ErrorCode,
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None,
    current_leader: LeaderIdAndEpoch | None = None,
) -> PartitionData:
    """Without records. The aborted transactions are null if Kafka gets as far as the log, else empty."""
    return PartitionData(
        partition_index=cached.wanted.partition,
        error_code=error,
        high_watermark=-1,
        current_leader=current_leader or LeaderIdAndEpoch(),
        aborted_transactions=aborted_transactions,
        records=b"",
    )
