"""A consumer group (KIP-848) at work while the power may be lost, and what must be left of it.

Members join, leave and commit, so that epochs and offsets grow. Every acknowledged offset must be in the data
file, or a later one, and the group's epoch must be at least every epoch that a member was answered.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from kshim.check.metadata import known_topics
from kshim.check.stored import Stored
from kshim.cluster.names import GROUP_METADATA_TOPIC
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.stored_records import StoredRecords
from kshim.storage.embedded.rows import CHUNK_KEY, SO_FAR
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitValue
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.records.batch import batches, records

GROUP, MEMBERS = "power", ("one", "two")
TIMEOUT_S = 20
LEAVES = -1
SHARE_OF_LEAVES = 0.1
PAUSE_S = 0.005
TO_AWAIT = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


class Kept(NamedTuple):
    """An acknowledgement at `at_s`: an epoch, or the offset of a partition."""

    at_s: float
    epoch: int
    partition: int = -1
    offset: int = -1


@dataclass
class Work:
    """The acknowledgements to the members of a run."""

    acknowledged: list[Kept] = field(default_factory=list)
    offsets: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """The next offset to commit: a partition's offsets grow, whichever member has it."""
    failure: BaseException | None = None


class _Member:
    """A member, over bare requests."""

    def __init__(self, name: str, topic: str, chance: random.Random, work: Work) -> None:
        self._name, self._topic, self._chance, self._work = name, topic, chance, work
        self._epoch = 0
        self._owned: tuple[TopicPartitions, ...] = ()

    def step(self, wire: Wire) -> None:
        """Send a heartbeat, and commit an offset of each partition."""
        if self._epoch > 0 and self._chance.random() < SHARE_OF_LEAVES:
            wire.ask(1, self._leaving())
            self._epoch, self._owned = 0, ()
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._name,
            member_epoch=self._epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(self._topic,),
            topic_partitions=self._owned,
        )
        answer = wire.ask(1, request)
        if answer.error_code in TO_AWAIT:
            return
        if answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH:
            self._epoch, self._owned = 0, ()
            return
        assert answer.error_code == ErrorCode.NONE, answer
        self._work.acknowledged.append(Kept(time.time(), answer.member_epoch))
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = answer.assignment.topic_partitions
        for partition in self._owned[0].partitions if self._owned else ():
            self._commit(wire, partition)

    def _leaving(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=self._name, member_epoch=LEAVES)

    def _commit(self, wire: Wire, partition: int) -> None:
        offset = next(self._work.offsets)
        position = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._name,
            topics=(OffsetCommitRequestTopic(name=self._topic, partitions=(position,)),),
        )
        (topic,) = wire.ask(9, request).topics
        if topic.partitions[0].error_code == ErrorCode.NONE:
            self._work.acknowledged.append(Kept(time.time(), self._epoch, partition, offset))


@contextmanager
def members_at_work(host: str, port: int, topic: str, seed: int) -> Iterator[Work]:
    """Meanwhile the members work. After a failed sync they connect again."""
    work, stopping = Work(), threading.Event()

    def run(name: str) -> None:
        member = _Member(name, topic, random.Random(f"{seed}-{name}"), work)
        while not stopping.is_set():
            with suppress(OSError), Wire(host, port, timeout_s=TIMEOUT_S) as wire:
                while not stopping.wait(PAUSE_S):
                    member.step(wire)

    def run_to_end(name: str) -> None:
        try:
            run(name)
        except BaseException as failure:
            work.failure = failure

    threads = [threading.Thread(target=run_to_end, args=(name,)) for name in MEMBERS]
    for thread in threads:
        thread.start()
    yield work
    stopping.set()
    for thread in threads:
        thread.join()
    if work.failure is not None:
        raise work.failure


def missing(stored: Stored, topic: str, wanted: Collection[Kept]) -> str:
    """Say what is missing of what was acknowledged; "" if nothing is."""
    state = _groups(stored)
    group = state.consumer.groups.get(GROUP)
    epoch = 0 if group is None else group.epoch
    least = max((each.epoch for each in wanted), default=0)
    if epoch < least:
        return f"group {GROUP} is in epoch {epoch}, {least} was acknowledged"
    offsets: Mapping[tuple[str, int], OffsetCommitValue] = state.offsets.get(GROUP, {})
    for each in wanted:
        if each.partition >= 0:
            found = offsets.get((topic, each.partition))
            if found is None or found.offset < each.offset:
                return f"{each} was acknowledged, but {found} is the offset of {topic}-{each.partition}"
    return ""


def _groups(stored: Stored) -> HardState:
    """The groups as a coordinator would load them."""
    state = HardState()
    replaying = StoredRecords(state)
    partitions = known_topics(stored).partitions
    for key, value in stored.rows("log"):
        topic, _ = partitions[CHUNK_KEY.unpack(key)[0]]
        if topic.name == GROUP_METADATA_TOPIC:
            for batch in batches(value[SO_FAR.size :]):
                found = ((bytes(each.key or b""), each.value) for each in records(batch))
                replaying.replay(
                    ((key, None if value is None else bytes(value)) for key, value in found), None
                )
    return state
