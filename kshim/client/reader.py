"""Reads records of partitions, from a position on: to an end, or for as long as records come.

One Fetch is under way at each leader, and whichever leader answers first is read first. An answer is decoded
while its records are used, so memory holds one answer for each leader.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from kshim.client.cluster import NO_LEADER, PAUSE_S, Cluster, Retry, Topic
from kshim.client.connection import Connection
from kshim.client.faults import ClientError, Refused, Unreachable, is_retriable
from kshim.client.fetched import FetchedPartition
from kshim.client.record import Consumed
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from schemas.records.batch import CorruptRecordBatch

FETCH_BYTES: Final = 8 * 1024 * 1024
"""Most bytes of one answer, but for a single larger batch."""
WAIT_MS: Final = 500
"""How long a broker waits for records before it answers that there are none."""

TopicPartition = tuple[str, int]


class _UnderWay(NamedTuple):
    connection: Connection
    asked: Mapping[TopicPartition, int]
    """The positions that were asked for."""


class Reader:
    """`positions` is what is still to be read; it moves with each record that `poll` yields."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
        committed_only: bool = False,
        notice: Callable[[str], object] = lambda line: None,
    ) -> None:
        """ends: the offset at which reading a partition stops; None to read on for ever. notice: called with
        a line about records that were deleted before they could be read.
        """
        self._cluster = cluster
        self._ends = ends
        self._committed_only = committed_only
        self._notice = notice
        self.positions = dict(positions)
        self._topics: dict[str, Topic] = {}
        self._under_way: dict[int, _UnderWay] = {}
        self._refusal: ClientError | None = None
        self._refused_s = 0.0

    @property
    def is_at_end(self) -> bool:
        """True if all partitions are read to their ends."""
        return self._ends is not None and not self._left()

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from now on, and no others."""
        self.positions = dict(positions)

    def poll(self, timeout_s: float) -> Iterator[Consumed]:
        """Yield the records of the next answer; none if no leader answers in time. Raises ClientError."""
        try:
            self._ask_leaders()
        except Retry as retry:
            self._not_now(retry.error)
            time.sleep(min(timeout_s, PAUSE_S))
            return
        for node_id in self._ready(timeout_s):
            yield from self._receive(node_id)

    # ---- asking

    def _left(self) -> dict[TopicPartition, int]:
        ends = self._ends
        if ends is None:
            return self.positions
        return {each: at for each, at in self.positions.items() if at < ends[each]}

    def _ask_leaders(self) -> None:
        """Send a Fetch to each leader that has none under way. Raises Retry."""
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for (topic, partition), position in self._left().items():
            leader = self._topic(topic).partitions[partition].leader
            if leader == NO_LEADER:
                self._topics.clear()
                raise Retry(ClientError(f"no running broker leads {topic}-{partition}"))
            if leader not in self._under_way:
                by_leader.setdefault(leader, {})[topic, partition] = position
        for leader, asked in by_leader.items():
            connection = self._cluster.node(leader, "fetch")
            try:
                connection.send(self._request(asked))
            except Unreachable as error:
                self._lose(connection)
                raise Retry(error) from None
            self._under_way[leader] = _UnderWay(connection, asked)

    def _topic(self, name: str) -> Topic:
        if name not in self._topics:
            self._topics[name] = self._cluster.led_topic(name)
        return self._topics[name]

    def _request(self, asked: Mapping[TopicPartition, int]) -> FetchRequest:
        by_topic: dict[str, list[FetchPartition]] = {}
        for (topic, partition), position in asked.items():
            wanted = FetchPartition(
                partition=partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
            )
            by_topic.setdefault(topic, []).append(wanted)
        return FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(self._committed_only),
            topics=tuple(FetchTopic(topic=name, partitions=tuple(some)) for name, some in by_topic.items()),
        )

    # ---- answers

    def _ready(self, timeout_s: float) -> list[int]:
        """The node ids of the leaders that have answered, at least in part."""
        now = [each for each, it in self._under_way.items() if it.connection.has_received]
        if now:
            return now
        waiting = {it.connection.fileno(): each for each, it in self._under_way.items()}
        readable, _, _ = select.select(list(waiting), [], [], timeout_s)
        return [waiting[each] for each in readable]

    def _receive(self, node_id: int) -> Iterator[Consumed]:
        connection, asked = self._under_way.pop(node_id)
        try:
            response = connection.receive()
        except Unreachable as error:
            self._lose(connection)
            self._not_now(error)
            return
        if response.error_code != ErrorCode.NONE:
            self._refuse("Fetch", response.error_code)
            return
        for topic in response.responses:
            for answered in topic.partitions:
                name = topic.topic, answered.partition_index
                # Another assignment may have come meanwhile.
                if self.positions.get(name) == asked.get(name):
                    yield from self._records(name, answered)

    def _records(self, name: TopicPartition, answered: PartitionData) -> Iterator[Consumed]:
        topic, partition = name
        if answered.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._go_on_behind_deleted(name)
            return
        if answered.error_code != ErrorCode.NONE:
            self._refuse(f"{topic}-{partition}", answered.error_code)
            return
        self._refusal = None
        fetched = FetchedPartition(topic, answered, self.positions[name])
        end = None if self._ends is None else self._ends[name]
        try:
            for record in fetched:
                if end is not None and record.offset >= end:
                    self.positions[name] = end
                    return
                self.positions[name] = record.offset + 1
                yield record
        except CorruptRecordBatch as error:
            raise ClientError(
                f"{topic}-{partition}: the batch at offset {fetched.position}: {error}"
            ) from None
        self.positions[name] = fetched.position

    def _go_on_behind_deleted(self, name: TopicPartition) -> None:
        from kshim.client.offsets import EARLIEST, offsets

        topic, partition = name
        first = offsets(self._cluster, self._topic(topic), [partition], EARLIEST)[partition]
        position = self.positions[name]
        if first <= position:
            raise ClientError(f"{topic}-{partition} has no offset {position} any more: its log was cut")
        self._notice(f"{topic}-{partition}: the records {position} to {first - 1} are deleted")
        self.positions[name] = first

    def _refuse(self, what: str, error_code: int) -> None:
        refused = Refused(what, error_code)
        if not is_retriable(error_code):
            raise refused
        self._not_now(refused)
        time.sleep(PAUSE_S)

    def _not_now(self, error: ClientError) -> None:
        """Note why reading does not go on. Raises the error when that has lasted too long."""
        self._topics.clear()
        now_s = time.monotonic()
        if self._refusal is None:
            self._refused_s = now_s
        self._refusal = error
        if now_s - self._refused_s >= self._cluster.settings.timeout_s:
            raise error

    def _lose(self, connection: Connection) -> None:
        self._cluster.drop(connection)
        self._topics.clear()
