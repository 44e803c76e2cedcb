"""Writes the committed offsets into the upstream's own __consumer_offsets, too, for tools that ask there.

They are commits from outside a group, with the groups' own names, and come up to FLUSH_S late: nothing here
reads them, and clients are answered without them. What a shard holds when it is taken over is committed
again, as the leader before may not have come to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from twisted.internet.defer import Deferred

from kshim.requests.once import Once
from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators
from kshim.upstream.link import LinkError
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
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

Partitions = Mapping[tuple[str, int], OffsetCommitValue | None]
"""By topic and partition; None is deleted."""


class MirroredOffsets:
    """The offsets that the upstream has not been told yet, and the links to its coordinators."""

    def __init__(self, reactor: Any, coordinators: UpstreamCoordinators, once: Once) -> None:
        """once: keeps lines from being repeated."""
        self._reactor = reactor
        self._coordinators = coordinators
        self._once = once
        self._untold: dict[bytes, bytes | None] = {}
        """Values by key, as in the journal."""
        self._flush_later: Any = None
        self._is_flushing = False
        self._is_stopped = False

    def note(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take in records of the journal that are durable; those that are no offsets are left out."""
        untold = self._untold
        for key, value in entries:
            if key[:2] in OFFSETS:
                untold[key] = value
        if untold and self._flush_later is None and not self._is_flushing and not self._is_stopped:
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
        self.note(())

    async def _tell_some(self) -> None:
        """Tell the upstream the oldest of what it has not been told."""
        some = list(islice(self._untold.items(), MOST_AT_ONCE))
        for key, _ in some:
            del self._untold[key]
        kept: set[str] = set()
        for group_id, partitions in _by_group(some).items():
            try:
                if not await self._tell(group_id, partitions):
                    kept.add(group_id)
            except LinkError as error:
                logger.log(
                    self._once.level("mirrored"), "offsets are not told to the upstream yet: %s", error
                )
                kept.add(group_id)
        if kept:
            self._keep(some, kept)

    def _keep(self, some: Iterable[tuple[bytes, bytes | None]], groups: set[str]) -> None:
        """Tell these another time, unless there are newer ones."""
        for raw_key, raw_value in some:
            key = decode_key(raw_key)
            if isinstance(key, OffsetCommitKey) and key.group in groups:
                self._untold.setdefault(raw_key, raw_value)

    async def _tell(self, group_id: str, partitions: Partitions) -> bool:
        """Whether the upstream need not be told again. Raises LinkError."""
        link = await self._coordinators.link(group_id)
        if isinstance(link, ErrorCode):
            return False
        committed = {where: value for where, value in partitions.items() if value is not None}
        errors: set[int] = set()
        if committed:
            answer = await link.ask(_commit(group_id, committed), newest=NEWEST_BY_NAME, timeout_s=ANSWER_S)
            errors |= {each.error_code for topic in answer.topics for each in topic.partitions}
        deleted = [where for where, value in partitions.items() if value is None]
        if deleted:
            answer = await link.ask(_delete(group_id, deleted), timeout_s=ANSWER_S)
            errors |= {answer.error_code, *(each.error_code for t in answer.topics for each in t.partitions)}
            errors -= {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        return self._judge(group_id, errors - {ErrorCode.NONE})

    def _judge(self, group_id: str, errors: set[int]) -> bool:
        if not errors:
            return True
        if errors & LATER:
            return False
        if errors & IN_USE:
            logger.log(
                self._once.level(("in use", group_id)),
                "group %s has members here and at the upstream itself: both read the same partitions, and the"
                " upstream does not take the offsets that are committed here",
                group_id,
            )
        else:
            names = ", ".join(sorted(str(error) for error in errors))
            logger.log(
                self._once.level(("refused", group_id)),
                "the upstream does not take the offsets of group %s: error %s",
                group_id,
                names,
            )
        return True


def _by_group(
    entries: Iterable[tuple[bytes, bytes | None]],
) -> dict[str, dict[tuple[str, int], OffsetCommitValue | None]]:
    found: dict[str, dict[tuple[str, int], OffsetCommitValue | None]] = {}
    for data, value in entries:
        try:
            key = decode_key(data)
            if isinstance(key, OffsetCommitKey):
                found.setdefault(key.group, {})[key.topic, key.partition] = decode_value(key, value)
        except MalformedMessage as error:
            logger.warning("a committed offset cannot be told to the upstream: %s", error)
    return found


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _commit(group_id: str, offsets: Mapping[tuple[str, int], OffsetCommitValue]) -> OffsetCommitRequest:
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


def _delete(group_id: str, partitions: Iterable[tuple[str, int]]) -> OffsetDeleteRequest:
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
