"""A runtime with the test's own journal and clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.settings import Settings
from kshim.storage.interfaces import NO_PRODUCER, JournalBatch, StorageError
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, encode_key
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import PENDING, context, later
from tests.coordination.groups.history import protocols

Entries = Sequence[tuple[bytes, bytes | None]]
Entry = JournalBatch | EndTxnMarker
NONSENSE = JournalBatch([(encode_key(GroupMetadataKey(group="a")), b"\x00\x63 nonsense")])
SESSION_MS = 10_000
START_S = 1_700_000_000
EXPIRY_S = Settings().offsets_retention_check_interval_ms / 1000
RETENTION_S = Settings().offsets_retention_minutes * 60


class HeldJournal:
    """A journal whose appends become durable when the test says so, or at once while `holds` is False."""

    def __init__(self) -> None:
        self.holds = True
        self.durable: dict[int, list[Entry]] = {}
        self.writes: list[tuple[int, Entry, Deferred[None]]] = []

    def append(
        self, shard: int, records: Entries, now_ms: int, *, producer: tuple[int, int] = NO_PRODUCER
    ) -> Deferred[None]:
        return self._write(shard, JournalBatch(tuple(records), producer))

    def prove_leadership(self, shard: int) -> Deferred[None]:
        return self._write(shard, JournalBatch(()))

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[None]:
        return self._write(shard, marker)

    def load(self, shard: int) -> Iterator[Entry]:
        return iter(self.durable.get(shard, ()))

    def _write(self, shard: int, entry: Entry) -> Deferred[None]:
        write = (shard, entry, Deferred[None]())
        self.writes.append(write)
        if not self.holds:
            self.release()
        return write[2]

    def release(self, shard: int | None = None) -> None:
        """Make the oldest append durable, of any shard or of this one."""
        write = next(write for write in self.writes if shard in (None, write[0]))
        self.writes.remove(write)
        self.durable.setdefault(write[0], []).append(write[1])
        write[2].callback(None)

    def fail(self, why: StorageError | None = None) -> None:
        """Make every append that is not durable yet fail, as a store does: it keeps none behind one that it
        lost."""
        failed, self.writes = self.writes, []
        for _, _, settled in failed:
            settled.errback(why or StorageError("the disk is full"))


class Server:
    """A runtime, its journal and its clock. Groups "a" and "b" are in different shards."""

    def __init__(self) -> None:
        self.journal = HeldJournal()
        self.clock = Clock()
        self.clock.advance(START_S)
        self.may_answer = True
        """Whether no other process leads a shard, as far as the runtime is told."""
        self.runtime = self.start()

    def start(self) -> GroupRuntime:
        ids = iter(range(1, 1_000))
        settings = Settings(group_initial_rebalance_delay_ms=3_000)
        coordinator = Coordinator(settings, lambda prefix: f"{prefix}-{next(ids)}", partitions=2)
        assert coordinator.shard_for("a") != coordinator.shard_for("b")
        self.runtime = GroupRuntime(
            coordinator, self.journal, self.clock, may_answer=lambda shard: self.may_answer
        )
        self.runtime.start()
        return self.runtime

    def next_call_s(self) -> float:
        """The delay of the only scheduled call."""
        (call,) = self.clock.getDelayedCalls()
        seconds: float = call.getTime()
        return seconds

    def submit(self, request: Any, version: int = 9) -> Any:
        """Send a request; returns its answer at the end of the reactor's turn."""
        answer = later(self.runtime.submit(context(version), request))
        self.runtime.end_turn()
        return answer

    def commit(self, group_id: str = "a", offset: int = 5, **fields: Any) -> Any:
        return self.submit(_commit(group_id, offset, **fields))

    def begin_commit(self, group_id: str = "a", offset: int = 5) -> Any:
        """Like `commit`, within a turn that goes on."""
        return later(self.runtime.submit(context(9), _commit(group_id, offset)))

    def fetch(self, group_id: str = "a") -> Any:
        topic = OffsetFetchRequestTopics(name="topic", partition_indexes=(0,))
        return self.submit(OffsetFetchRequestGroup(group_id=group_id, topics=(topic,)))

    def heartbeat(self, group_id: str = "a", member_id: str = "test-1") -> Any:
        return self.submit(HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id))

    def join(self, member_id: str = "", version: int = 9, **fields: Any) -> Any:
        request = JoinGroupRequest(
            group_id="a",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols("range"),
        )
        return self.submit(replace(request, **fields), version)

    def sync(self, member_id: str = "test-1") -> Any:
        plan = (SyncGroupRequestAssignment(member_id=member_id, assignment=b"all"),)
        return self.submit(
            SyncGroupRequest(group_id="a", generation_id=1, member_id=member_id, assignments=plan), 5
        )

    def stable(self) -> None:
        """Make a durable group "a" with the member test-1."""
        self.journal.holds = False
        result(self.join())
        joining = self.join("test-1")
        self.clock.advance(3)
        assert result(joining).error_code == ErrorCode.NONE
        assert result(self.sync()).error_code == ErrorCode.NONE
        self.journal.holds = True


def _commit(group_id: str, offset: int, **fields: Any) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="topic", partitions=(partition,))
    return OffsetCommitRequest(group_id=group_id, topics=(topic,), **fields)


MEMBER = {"member_id": "test-1", "generation_id_or_member_epoch": 1}


def result(answer: Any) -> Any:
    """The response, or PENDING if there is none yet."""
    if not isinstance(answer, Deferred):
        return answer
    seen: list[Any] = [PENDING]

    def see(response: Any) -> Any:
        seen.append(response)
        return response

    answer.addCallback(see)
    return seen[-1]


def offset(answer: Any) -> int:
    committed: int = result(answer).topics[0].partitions[0].committed_offset
    return committed


def error(answer: Any) -> ErrorCode:
    """The error of a commit's partition, or of the whole answer."""
    response = result(answer)
    assert response is not PENDING
    partition = response.topics[0].partitions[0] if getattr(response, "topics", ()) else response
    return ErrorCode(partition.error_code)
