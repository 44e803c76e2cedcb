"""One pass over the partitions of a Fetch: makes the answer for each, and counts the bytes of all answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from kshim.cluster import Cluster, Partition
from kshim.cluster.leadership import NO_EPOCH, end_of_epoch, fault_in_leadership
from kshim.configs.config import Config
from kshim.fetching.sessions import MAX_INT32, CachedPartition
from kshim.storage.interfaces import Log
from kshim.storage.producers import Aborted
from kshim.turns.unread import Unread
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from schemas.records.batch import next_offset

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_EPOCH_END, NO_LEADER = EpochEndOffset(), LeaderIdAndEpoch()
FIRST_VERSION_BY_TOPIC_ID = 13
FIRST_VERSION_FROM_ANY_REPLICA = 11
FIRST_VERSION_WITH_CURRENT_LEADER = 16
NOTHING: frozenset[CachedPartition] = frozenset()
SENT_AWAY = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class Readable(Protocol):
    """The broker that a Fetch reads from."""

    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> Config: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def log(self) -> Log: ...
    @property
    def unread(self) -> Unread: ...


class PartitionRead(NamedTuple):
    """The answer for one partition."""

    cached: CachedPartition
    data: PartitionData
    is_behind: bool = False
    """True if there are records from the fetch offset on, even if the answer has none of them."""


class Position:
    """The offset up to which the records of a partition have been counted."""

    __slots__ = ("left_bytes", "next_offset")

    def __init__(self, next_offset: int, left_bytes: int) -> None:
        self.next_offset = next_offset
        self.left_bytes = left_bytes
        """How many more bytes the partition may add to the answer."""

    def count(self, records: bytes, end: int) -> int:
        """Count `records`, read from `next_offset` on. Return how many bytes they count towards min_bytes.

        The partition has records up to `end`. If `records` stop before it, the next batch did not fit. Then
        the partition counts as full, else a Fetch would wait for bytes that no batch can supply.
        """
        self.next_offset = next_offset(records, self.next_offset)
        cut_short = self.next_offset < end
        counted = max(len(records), self.left_bytes) if cut_short else len(records)
        self.left_bytes = max(0, self.left_bytes - counted)
        return counted


class PartitionReads:
    """Reads the partitions of a Fetch, and keeps the answer for each."""

    __slots__ = (
        "_any_replica",
        "_broker",
        "_bytes_read",
        "_from_replica",
        "_left_bytes",
        "_may_see",
        "_min_bytes",
        "_most_bytes",
        "_positions",
        "_stay_unknown",
        "_version",
        "committed",
        "failed",
        "known",
        "leaders",
        "missing_bytes",
        "request",
        "unknown",
    )

    def __init__(
        self,
        broker: Readable,
        api_version: int,
        request: FetchRequest,
        may_see: Callable[[str], bool] | None = None,
        most_bytes: int = MAX_INT32,
    ) -> None:
        """may_see: returns True if the client may read a topic; None if it may read all. most_bytes: a limit
        for the answer, in addition to the request's.
        """
        self._broker = broker
        self._most_bytes = most_bytes
        self._version = api_version
        self._may_see = may_see
        self._any_replica = api_version >= FIRST_VERSION_FROM_ANY_REPLICA
        self._from_replica = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        self._bytes_read = 0  # while 0, a batch may be read that is larger than every limit
        allowed_bytes = min(request.max_bytes, broker.config.fetch_max_bytes, most_bytes)
        self._left_bytes = min(allowed_bytes, broker.unread.answer_bytes())
        """How many more bytes the answer may hold."""
        self._positions: dict[CachedPartition, Position] = {}
        self._stay_unknown: frozenset[CachedPartition] = NOTHING
        self.request = request
        self.committed = request.isolation_level == READ_COMMITTED
        self.missing_bytes = self._min_bytes = min(request.min_bytes, self._left_bytes)
        """How many bytes are still missing to have min_bytes."""
        self.known: list[PartitionRead] = []
        """The partitions that existed when the request came."""
        self.unknown: list[PartitionRead] = []
        """The other partitions; Kafka answers them last."""
        self.failed = False
        """True if a known partition had an error: then the Fetch does not wait. An unknown partition does not
        end the wait for the others.
        """
        self.leaders: list[int] = []
        """The node ids of the leaders that the client is redirected to."""

    def read(self, partitions: Iterable[CachedPartition]) -> PartitionReads:
        """Read the partitions in this order, and return self.

        It may be called repeatedly, each time for more.
        """
        before_bytes = self._bytes_read
        for cached in partitions:
            found = self._find(cached)
            if isinstance(found, Partition) or found is ErrorCode.INCONSISTENT_TOPIC_ID:
                self._look(cached, found)
            else:
                self.unknown.append(PartitionRead(cached, refusal(cached.wanted.partition, found, ())))
        self._broker.unread.taken(self._bytes_read - before_bytes)
        return self

    def anew(self) -> PartitionReads:
        """Return a new object for the pass after the wait, to be used with `again`."""
        anew = PartitionReads(self._broker, self._version, self.request, self._may_see, self._most_bytes)
        anew.unknown = self.unknown
        anew._stay_unknown = frozenset(read.cached for read in self.unknown)
        return anew

    def again(self, partitions: Iterable[CachedPartition]) -> PartitionReads:
        """Read again after the wait, and return self.

        Partitions that were unknown before stay unknown. A partition that was deleted meanwhile is an error.
        """
        before_bytes = self._bytes_read
        for cached in partitions:
            if cached not in self._stay_unknown:
                self._look(cached, self._find(cached))
        self._broker.unread.taken(self._bytes_read - before_bytes)
        return self

    def in_order(self) -> PartitionReads:
        """Sort the unknown partitions as Kafka does, unknown topic ids first, and return self."""
        if len(self.unknown) > 1:
            self.unknown.sort(key=lambda read: read.data.error_code != ErrorCode.UNKNOWN_TOPIC_ID)
        return self

    def knows_any(self, partitions: Iterable[CachedPartition]) -> bool:
        """True if any of the partitions exists, even if with another topic id."""
        found = map(self._find, partitions)
        return any(
            not isinstance(each, ErrorCode) or each is ErrorCode.INCONSISTENT_TOPIC_ID for each in found
        )

    def position(self, cached: CachedPartition) -> Position:
        """Return the position of a partition, even if this pass has not read it."""
        known = self._positions.get(cached)
        if known is None:
            left_bytes = max(0, min(cached.wanted.partition_max_bytes, self._left_bytes))
            known = self._positions[cached] = Position(cached.wanted.fetch_offset, left_bytes)
        return known

    def _find(self, cached: CachedPartition) -> Partition | ErrorCode:
        """Return the partition as it is now, or an error. Once a topic id was known, it stands for the
        topic's name from then on.
        """
        cluster, named = self._broker.cluster, cached.topic
        if named.name is None:
            known = cluster.topic_by_id(named.topic_id)
            if known is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            named.name = known.name
        if self._may_see is not None and not self._may_see(named.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = cluster.topics.get(named.name)
        partition = topic.partition(cached.wanted.partition) if topic else None
        if topic is None or partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._version >= FIRST_VERSION_BY_TOPIC_ID and topic.topic_id != named.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        return partition

    def _look(self, cached: CachedPartition, found: Partition | ErrorCode) -> None:
        if isinstance(found, Partition):
            cached.partition_no = found.partition_no
            read = self._read(cached, found)
        else:
            cached.partition_no = None
            read = PartitionRead(cached, refusal(cached.wanted.partition, found))
        self.known.append(read)
        if self._left_bytes < 0:
            self._left_bytes = 0
        if read.data.error_code or read.data.diverging_epoch is not NO_EPOCH_END:
            self.failed = True

    def _read(self, cached: CachedPartition, partition: Partition) -> PartitionRead:
        wanted = cached.wanted
        known_epoch = wanted.current_leader_epoch if wanted.current_leader_epoch >= 0 else NO_EPOCH
        fault = fault_in_leadership(
            self._broker.node_id, partition, known_epoch, any_replica=self._any_replica
        )
        if fault is ErrorCode.NONE and self._from_replica:  # only consumers may fetch here, not replicas
            has_epoch = known_epoch != NO_EPOCH
            fault = ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if fault is not ErrorCode.NONE:
            return self._sent_away(cached, partition, fault)
        offsets = self._broker.log.offsets(partition.partition_no)
        start, high_watermark, log_end, stable = offsets
        cached.end_seen = high_watermark
        parted = self._diverging_epoch(wanted, partition, start)
        if parted is None or not (start <= wanted.fetch_offset <= log_end or parted is not NO_EPOCH_END):
            return PartitionRead(cached, refusal(wanted.partition, ErrorCode.OFFSET_OUT_OF_RANGE))
        end = stable if self.committed else high_watermark
        is_behind = parted is NO_EPOCH_END and wanted.fetch_offset < end
        if is_behind and min(self._left_bytes, wanted.partition_max_bytes) < 0:
            return PartitionRead(cached, refusal(wanted.partition, ErrorCode.UNKNOWN_SERVER_ERROR))
        records = self._records(cached, partition, end) if is_behind else b""
        aborted = None
        if self.committed and parted is NO_EPOCH_END:
            aborted = self._aborted(wanted, partition, records, end)
        data = PartitionData(
            partition_index=wanted.partition,
            error_code=ErrorCode.NONE,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=start,
            diverging_epoch=parted,
            aborted_transactions=aborted,
            records=records,
        )
        return PartitionRead(cached, data, is_behind)

    def _sent_away(self, cached: CachedPartition, partition: Partition, error: ErrorCode) -> PartitionRead:
        """Return an error, with the current leader for clients whose version has the field (KIP-951)."""
        if self._version < FIRST_VERSION_WITH_CURRENT_LEADER or error not in SENT_AWAY:
            return PartitionRead(cached, refusal(cached.wanted.partition, error))
        if not self._from_replica:
            self.leaders.append(partition.leader)
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return PartitionRead(cached, refusal(cached.wanted.partition, error, current_leader=leader))

    def _diverging_epoch(
        self, wanted: FetchPartition, partition: Partition, log_start_offset: int
    ) -> EpochEndOffset | None:
        """Find where the client's log and this one diverge (KIP-595).

        NO_EPOCH_END: nowhere, by what the client says. None: this log does not have the client's epoch or
        offset.
        """
        if wanted.last_fetched_epoch < 0:
            return NO_EPOCH_END
        epoch, end_offset = end_of_epoch(self._broker.log, partition, wanted.last_fetched_epoch)
        if epoch < 0 or wanted.fetch_offset < log_start_offset:
            return None
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return NO_EPOCH_END

    def _records(self, cached: CachedPartition, partition: Partition, end: int) -> bytes:
        wanted, min_one = cached.wanted, not self._bytes_read
        limit = min(self._left_bytes, wanted.partition_max_bytes)
        if limit == 0 and not min_one:
            return b""
        records = self._broker.log.read(
            partition.partition_no, wanted.fetch_offset, limit, min_one=min_one, up_to=end
        )
        enough = self._min_bytes <= 1
        self.missing_bytes -= len(records) if enough else self.position(cached).count(records, end)
        self._bytes_read += len(records)
        self._left_bytes = max(0, self._left_bytes - len(records))
        return records

    def _aborted(
        self, wanted: FetchPartition, partition: Partition, records: bytes, end: int
    ) -> Sequence[AbortedTransaction] | None:
        """The aborted transactions that overlap `records`.

        As in Kafka, None if there are records and some room for them, but not enough.
        """
        log, partition_no, start = self._broker.log, partition.partition_no, wanted.fetch_offset
        if not records:
            does_not_fit = min(self._left_bytes, wanted.partition_max_bytes) > 0
            return None if start < end and does_not_fit else ()
        if start > log.last_aborted_offset(partition_no):
            return ()
        found = log.aborted_transactions(partition_no, start, next_offset(records, end))
        return Mapped(_aborted_transaction, found)


def _aborted_transaction(aborted: Aborted) -> AbortedTransaction:
    return AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)


def refusal(
    partition_index: int,
    error: ErrorCode,
    aborted_transactions: Sequence[AbortedTransaction] | None = None,
    current_leader: LeaderIdAndEpoch = NO_LEADER,
) -> PartitionData:
    """Return an answer with an error and no records.

    aborted_transactions: None (null) for errors that Kafka finds only when it reads the log, else empty.
    """
    return PartitionData(
        partition_index=partition_index,
        error_code=error,
        high_watermark=-1,
        diverging_epoch=NO_EPOCH_END,
        current_leader=current_leader,
        aborted_transactions=aborted_transactions,
        records=b"",
    )
