"""Writes the committed offsets into the upstream's own __consumer_offsets, too, for tools that ask there.

They are commits from outside a group, with the groups' own names, and come up to FLUSH_S late: nothing here
reads them, and clients are answered without them. `Renewal` looks whether the upstream still has them.

What clients delete is deleted there by `MergedGroups`. What has expired is deleted there if it is still what
was told: a group that has moved back to the upstream goes on without kshim.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from twisted.internet.defer import Deferred

from kshim.coordination.groups.pending_offsets import Partition
from kshim.requests.once import Once
from kshim.upstream.coordinators import ANSWER_S, by_place
from kshim.upstream.link import LinkError
from kshim.upstream.shards.answers import name_of
from kshim.upstream.upstream_groups import DELETE, FETCH, UpstreamGroups, offsets_of
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from schemas.message import MalformedMessage
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

logger = logging.getLogger(__name__)

FLUSH_S = 1.0
MOST_AT_ONCE = 2_000
"""Offsets that are sent in one flush; the others follow in the next one."""
NEWEST_BY_NAME = 9
"""Of OffsetCommit: later versions name topics by their ids."""
OFFSETS = (b"\0\0", b"\0\1")
"""How the keys of committed offsets begin."""
IN_USE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""What the upstream says if the group has members there."""
LATER = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)

MOST_EXPIRED_AT_ONCE = 20
"""Groups whose offsets have expired; the others follow in the next flush."""
USED_TWICE = (
    "is used here and has members at the upstream itself: both read the same partitions, and the upstream "
    "does not take the offsets that are committed here; give all members the same address"
)

Offsets = Mapping[Partition, OffsetCommitValue]
Offset = tuple[int, int, str]
"""Offset, leader epoch and metadata."""


class MirroredOffsets:
    """The offsets that the upstream has not been told yet, and the links to its coordinators."""

    def __init__(self, reactor: Any, upstream: UpstreamGroups, once: Once) -> None:
        """once: keeps lines from being repeated."""
        self._reactor = reactor
        self._upstream = upstream
        self._coordinators = upstream.coordinators
        self._once = once
        self.watch: Callable[[], object] = lambda: None
        """Called when groups have come whose offsets may not have been told."""
        self.in_use: set[str] = set()
        """Groups that have members at the upstream, too, as far as is known."""
        self._expired: dict[str, dict[Partition, OffsetCommitValue]] = {}
        """Offsets to be deleted at the upstream, unless it has others by now."""
        self._untold: dict[bytes, bytes] = {}
        """Values by key, as in the journal."""
        self._flush_later: Any = None
        self._is_flushing = False
        self._is_stopped = False

    def note(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take in records of the journal that are durable; those that are no offsets are left out."""
        untold = self._untold
        for key, value in entries:
            if key[:2] not in OFFSETS:
                continue
            if value is None:
                untold.pop(key, None)
            else:
                untold[key] = value
        self._flush_soon()

    @property
    def untold(self) -> int:
        """How many offsets the upstream has not been told yet."""
        return len(self._untold)

    def tell_again(self, group_id: str, where: Partition, value: OffsetCommitValue) -> None:
        """Tell the upstream an offset that it may know, unless a newer one is to be told."""
        key = OffsetCommitKey(group=group_id, topic=where[0], partition=where[1])
        self._untold.setdefault(encode_key(key), encode_value(value))
        self._flush_soon()

    def expired(self, group_id: str, offsets: Mapping[Partition, OffsetCommitValue]) -> None:
        """Delete at the upstream what has expired here, if it has not changed there; and the group, if it has
        no other offsets there.
        """
        self._expired.setdefault(group_id, {}).update(offsets)
        self._flush_soon()

    def note_use(self, group_id: str, *, is_used: bool) -> None:
        """Note whether a group with members here has some at the upstream, too, and log it if it has."""
        if not is_used:
            self.in_use.discard(group_id)
            return
        self.in_use.add(group_id)
        logger.log(self._once.level(("in use", group_id)), "group %s %s", group_id, USED_TWICE)

    def _flush_soon(self) -> None:
        if self._is_stopped or self._is_flushing or self._flush_later is not None:
            return
        if self._untold or self._expired:
            self._flush_later = self._reactor.callLater(FLUSH_S, self._flush)

    async def stop(self) -> None:
        """Tell the upstream what it has not been told, once, and stop."""
        self._is_stopped = True
        if self._flush_later is not None:
            self._flush_later.cancel()
            self._flush_later = None
            await self._tell_some()

    def _flush(self) -> None:
        self._flush_later = None
        self._is_flushing = True
        Deferred.fromCoroutine(self._tell_some()).addErrback(_log_fault).addCallback(self._flushed)

    def _flushed(self, _: object) -> None:
        self._is_flushing = False
        self._flush_soon()

    async def _tell_some(self) -> None:
        """Tell the upstream the oldest of what it has not been told."""
        some = list(islice(self._untold.items(), MOST_AT_ONCE))
        for key, _ in some:
            del self._untold[key]
        kept = await self._tell_groups(_by_group(some))
        for raw_key, raw_value in some if kept else ():
            if _group_of(raw_key) in kept:  # another time, unless there is something newer
                self._untold.setdefault(raw_key, raw_value)
        for group_id in list(islice(self._expired, MOST_EXPIRED_AT_ONCE)):
            await self._delete_expired(group_id, self._expired.pop(group_id))

    async def _tell_groups(self, groups: Mapping[str, Offsets]) -> set[str]:
        """Tell the upstream the offsets of some groups; return those that have to be told again."""
        kept = set(groups)
        try:
            placed, errors_of = by_place(
                (await self._coordinators.find(list(groups))).items() if groups else ()
            )
            kept -= {group_id for group_id, error in errors_of.items() if self._judge(group_id, {error})}
            for address, group_ids in placed.items():
                link = await self._coordinators.link_to(address)
                for group_id in group_ids:
                    request = _commit(group_id, groups[group_id])
                    answer = await link.ask(request, newest=NEWEST_BY_NAME, timeout_s=ANSWER_S)
                    errors = {each.error_code for topic in answer.topics for each in topic.partitions}
                    if self._judge(group_id, errors - {ErrorCode.NONE}):
                        kept.discard(group_id)
        except LinkError as error:
            logger.log(self._once.level("mirrored"), "offsets are not told to the upstream yet: %s", error)
        return kept

    async def _delete_expired(self, group_id: str, offsets: Offsets) -> None:
        """What cannot be deleted now is left to the retention of the upstream."""
        fetched = await self._upstream.ask(FETCH, group_id)
        if fetched.error_code:
            return
        there = offsets_of(fetched)
        same = [where for where, value in offsets.items() if told_as(there.get(where)) == offset_of(value)]
        if same:
            await self._upstream.delete_offsets(_delete(group_id, same))
        if len(same) == len(there):
            await self._upstream.ask(DELETE, group_id)  # which is refused if it has members

    def _judge(self, group_id: str, errors: set[int]) -> bool:
        if not errors:
            self.in_use.discard(group_id)
            return True
        if errors & LATER:
            return False
        if errors & IN_USE:
            self.note_use(group_id, is_used=True)
        else:
            names = ", ".join(sorted(map(name_of, errors)))
            logger.log(
                self._once.level(("refused", group_id)),
                "the upstream does not take the offsets of group %s: %s",
                group_id,
                names,
            )
        return True


def offset_of(value: OffsetCommitValue) -> Offset:
    """What the upstream is told of a committed offset."""
    return value.offset, value.leader_epoch, value.metadata


def told_as(partition: Any) -> Offset | None:
    """The same of what the upstream has, a partition of OffsetFetch; None if it has nothing."""
    if partition is None:
        return None
    return partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""


def _group_of(raw_key: bytes) -> str:
    key = decode_key(raw_key)
    return key.group if isinstance(key, OffsetCommitKey) else ""


def _by_group(entries: Iterable[tuple[bytes, bytes]]) -> dict[str, dict[Partition, OffsetCommitValue]]:
    found: dict[str, dict[Partition, OffsetCommitValue]] = {}
    for data, raw_value in entries:
        try:
            key = decode_key(data)
            value = decode_value(key, raw_value) if isinstance(key, OffsetCommitKey) else None
        except MalformedMessage as error:
            logger.warning("a committed offset cannot be told to the upstream: %s", error)
            continue
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            found.setdefault(key.group, {})[key.topic, key.partition] = value
    return found


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _commit(group_id: str, offsets: Offsets) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        member_id="",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[topic, partition].offset,
                        committed_leader_epoch=offsets[topic, partition].leader_epoch,
                        committed_metadata=offsets[topic, partition].metadata,
                    )
                    for partition in numbers
                ),
            )
            for topic, numbers in _by_topic(offsets).items()
        ),
    )


def _delete(group_id: str, partitions: Iterable[Partition]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=each) for each in numbers),
            )
            for topic, numbers in _by_topic(partitions).items()
        ),
    )


def _log_fault(failure: Any) -> None:
    logger.error("a fault of ours: %s", failure.getTraceback())
