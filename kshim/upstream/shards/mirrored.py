"""Copies the committed offsets to the upstream's own __consumer_offsets, for tools that look there.

The copies are commits from outside a group, under the group's own name, up to FLUSH_S late. kshim does not
read them, and answers clients without waiting for them. `Renewal` checks that the upstream still has them.

The upstream takes such a commit from any process. So kshim sends one only while it may answer clients: then
no other kshim can have acknowledged a newer commit. A process that was frozen or cut off sends nothing.

`MergedGroups` deletes at the upstream what clients delete. Expired offsets are deleted there only if they are
still what kshim has sent: a group that has moved back to the upstream goes on without kshim.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

from twisted.internet.defer import Deferred, TimeoutError, succeed

from kshim.callers.bounded import forget_first
from kshim.callers.once import Once
from kshim.coordination.groups.offsets import is_of_another_topic, no_id
from kshim.coordination.groups.pending_offsets import Partition
from kshim.storage.clock import Call
from kshim.upstream.coordinators import ANSWER_S, by_place
from kshim.upstream.link import Link, LinkError
from kshim.upstream.shards.answers import name_of
from kshim.upstream.shards.unsent import Unsent, UnsentOffsets
from kshim.upstream.upstream_groups import DELETE, FETCH, UpstreamGroups, offsets_of
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    OffsetCommitKey,
    OffsetCommitValue,
    TopicId,
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
from schemas.messages.offset_fetch import OffsetFetchResponsePartitions

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime
    from twisted.python.failure import Failure

    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

FLUSH_S = 1.0
MOST_AT_ONCE = 2_000
"""Limit of offsets in one flush; the others follow in the next one."""
NEWEST_BY_NAME, FIRST_BY_ID = 9, 10
"""The newest OffsetCommit that names topics, and the first that sends their ids. With an id, the upstream
does not take a topic for a recreated one of the same name.
"""
TAKEN = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID})
"""Answers after which an offset is not sent again. UNKNOWN_TOPIC_ID: its topic is gone."""
STOP_S = 2.0
"""How long the last flush may take; other processes wait for the shards."""
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
"""The upstream's answers for a group that has members there."""
LATER = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)

MOST_TAKEN = 50_000
"""Limit of offsets of which kshim knows that the upstream has taken them."""
MOST_EXPIRED_AT_ONCE = 20
"""Limit of groups whose expired offsets are deleted in one flush; the others follow in the next one."""
USED_TWICE = (
    "is used here and has members at the upstream itself: both read the same partitions, and the upstream "
    "does not take the offsets that are committed here; give all members the same address"
)

Offsets = Mapping[Partition, OffsetCommitValue]
Offset = tuple[int, int, str]
"""Offset, leader epoch and metadata."""


class _Committed(NamedTuple):
    """One offset of a group that has to be sent."""

    where: Partition
    value: OffsetCommitValue
    unsent: Unsent


class MirroredOffsets:
    """Sends the offsets that the upstream does not have yet."""

    def __init__(self, reactor: Reactor, upstream: UpstreamGroups, once: Once) -> None:
        """once: keeps log lines from being repeated."""
        self._reactor = reactor
        self._upstream = upstream
        self._coordinators = upstream.coordinators
        self._once = once
        self.watch: Callable[[], object] = lambda: None
        """Called when a shard was taken over: the upstream may lack offsets of its groups."""
        self.shard_for: Callable[[str], int] = lambda _: 0
        """Returns the shard of a group."""
        self.topic_id_of: Callable[[str], TopicId] = no_id
        """Returns the topic's current id, as far as it is known."""
        self.proven: Callable[[int], Deferred[bool]] = lambda _: succeed(True)
        """Fires with True if at that moment certainly no other process leads the shard."""
        self.in_use: set[str] = set()
        """Groups with members in kshim that also have members at the upstream, as far as is known."""
        self._expired: dict[str, dict[Partition, OffsetCommitValue]] = {}
        """Expired offsets to delete at the upstream, unless it has other ones by now."""
        self._taken: dict[bytes, Offset] = {}
        """The last offset that the upstream has taken, by key; the latest keys."""
        self._unsent = UnsentOffsets()
        self._flush_later: Call | None = None
        self._flushing: Deferred[None] | None = None
        self._is_stopped = False

    def note(self, shard: int, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take the committed offsets among a shard's records, which are durable; ignore other records."""
        self._unsent.note(shard, entries, self._reactor.seconds())
        self._flush_soon()

    def lost(self, shard: int) -> None:
        """Forget the unsent offsets of a shard that this process no longer leads."""
        self._unsent.lose(shard)

    @property
    def unsent(self) -> int:
        """The number of offsets that the upstream does not have yet."""
        return len(self._unsent)

    @property
    def lag_s(self) -> float:
        """How long the upstream has lacked one of them; 0 if there is none."""
        oldest_s = self._unsent.oldest_s()
        return 0.0 if oldest_s is None else self._reactor.seconds() - oldest_s

    def is_unsent(self, group_id: str, where: Partition) -> bool:
        """True if the upstream does not have a group's offset yet, which is to be sent."""
        return self._unsent.lacks(self.shard_for(group_id), _key(group_id, where))

    def was_taken(self, group_id: str, where: Partition, value: OffsetCommitValue) -> bool:
        """True if the upstream has taken this offset, as far as this process knows."""
        return self._taken.get(_key(group_id, where)) == offset_of(value)

    def send_again(self, group_id: str, where: Partition, value: OffsetCommitValue) -> None:
        """Send an offset again, unless a newer one is waiting to be sent."""
        unsent = Unsent(self.shard_for(group_id), _key(group_id, where), encode_value(value))
        self._unsent.note_older(unsent, self._reactor.seconds())
        self._flush_soon()

    def expired(self, group_id: str, offsets: Mapping[Partition, OffsetCommitValue]) -> None:
        """Delete at the upstream the offsets that have expired in kshim, if they have not changed there.
        Delete the group, too, if it has no other offsets there.
        """
        self._expired.setdefault(group_id, {}).update(offsets)
        self._flush_soon()

    def note_use(self, group_id: str, *, is_used: bool) -> None:
        """Note if a group of kshim also has members at the upstream, and log it if it has."""
        if not is_used:
            self.in_use.discard(group_id)
            return
        self.in_use.add(group_id)
        logger.log(self._once.level(("in use", group_id)), "group %s %s", group_id, USED_TWICE)

    def _flush_soon(self) -> None:
        if self._is_stopped or self._flushing is not None or self._flush_later is not None:
            return
        if self._unsent or self._expired:
            self._flush_later = self._reactor.callLater(FLUSH_S, self._flush)

    async def stop(self) -> None:
        """Send what the upstream does not have, once, and stop. The shards are still led."""
        self._is_stopped = True
        if self._flush_later is not None:
            self._flush_later.cancel()
            self._flush()
        if self._flushing is not None:
            try:
                await self._flushing.addTimeout(STOP_S, cast("IReactorTime", self._reactor))
            except TimeoutError:
                logger.debug("the upstream does not take %d offsets in time", len(self._unsent))

    def _flush(self) -> None:
        self._flush_later = None
        flushing = self._flushing = Deferred.fromCoroutine(self._send_some())
        flushing.addErrback(_log_fault).addCallback(self._flushed)

    def _flushed(self, _: object) -> None:
        self._flushing = None
        self._flush_soon()

    async def _send_some(self) -> None:
        """Send some of what the upstream does not have. Offsets that it does not take now go to the end of
        the queue.
        """
        some = self._unsent.first(MOST_AT_ONCE)
        if some:
            await self._send_groups(self._by_group(some))
        for each in some:
            self._unsent.put_off(each)
        for group_id in list(islice(self._expired, MOST_EXPIRED_AT_ONCE)):
            await self._delete_expired(group_id, self._expired.pop(group_id))

    async def _send_groups(self, groups: Mapping[str, Sequence[_Committed]]) -> None:
        try:
            placed, errors_of = by_place((await self._coordinators.find(list(groups))).items())
            for group_id, error in errors_of.items():
                self._answered(group_id, groups[group_id], {error})
            for address, group_ids in placed.items():
                link = await self._coordinators.link_to(address)
                for group_id in group_ids:
                    await self._send_group(link, group_id, groups[group_id])
        except LinkError as error:
            logger.log(
                self._once.level("mirrored"), "offsets are not committed at the upstream yet: %s", error
            )

    async def _send_group(self, link: Link, group_id: str, offsets: Sequence[_Committed]) -> None:
        """Send a group's offsets, if its shard is certainly led here. Raises LinkError."""
        if not await self.proven(self.shard_for(group_id)):
            return
        # No other event comes between the proof and the request.
        offsets = [each for each in offsets if self._unsent.has(each.unsent) and not self._is_past(each)]
        if offsets:
            has_ids = all(each.value.topic_id.int for each in offsets)
            newest = FIRST_BY_ID if has_ids else NEWEST_BY_NAME
            request = _commit(group_id, {each.where: each.value for each in offsets})
            answer = await link.ask(request, newest=newest, timeout_s=ANSWER_S)
            errors = {each.error_code for topic in answer.topics for each in topic.partitions}
            self._answered(group_id, offsets, errors - TAKEN)

    def _is_past(self, offset: _Committed) -> bool:
        """True if the offset's topic was deleted and recreated. The offset is then removed from the queue."""
        if not is_of_another_topic(offset.value, self.topic_id_of(offset.where[0])):
            return False
        self._unsent.remove(offset.unsent)
        return True

    def _answered(self, group_id: str, offsets: Iterable[_Committed], errors: set[int]) -> None:
        if self._judge(group_id, errors):
            for each in offsets:
                self._unsent.remove(each.unsent)
                if not errors:
                    self._taken.pop(each.unsent.key, None)
                    self._taken[each.unsent.key] = offset_of(each.value)
            forget_first(self._taken, MOST_TAKEN)

    async def _delete_expired(self, group_id: str, offsets: Offsets) -> None:
        """Delete a group's expired offsets. If that fails, they are left to the upstream's retention."""
        fetched = await self._upstream.ask(FETCH, group_id)
        if fetched.error_code or not await self.proven(self.shard_for(group_id)):
            return
        there = offsets_of(fetched)
        same = [
            where for where, value in offsets.items() if answered_offset(there.get(where)) == offset_of(value)
        ]
        if same:
            await self._upstream.delete_offsets(_delete(group_id, same))
        if len(same) == len(there):
            await self._upstream.ask(DELETE, group_id)  # the upstream refuses this if the group has members

    def _by_group(self, some: Iterable[Unsent]) -> dict[str, list[_Committed]]:
        found: dict[str, list[_Committed]] = {}
        for unsent in some:
            try:
                key = decode_key(unsent.key)
                value = decode_value(key, unsent.value)
            except MalformedMessage as error:
                logger.warning("an offset cannot be committed at the upstream: %s", error)
                self._unsent.remove(unsent)
                continue
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                where = key.topic, key.partition
                found.setdefault(key.group, []).append(_Committed(where, value, unsent))
        return found

    def _judge(self, group_id: str, errors: set[int]) -> bool:
        """True if these errors settle the group's offsets, so that they are not sent again."""
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


def _key(group_id: str, where: Partition) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=where[0], partition=where[1]))


def offset_of(value: OffsetCommitValue) -> Offset:
    """Return the part of a committed offset that is sent to the upstream."""
    return value.offset, value.leader_epoch, value.metadata


def answered_offset(partition: OffsetFetchResponsePartitions | None) -> Offset | None:
    """Return the same part of the upstream's offset, a partition of OffsetFetch; None if it has none."""
    if partition is None:
        return None
    return partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _commit(group_id: str, offsets: Offsets) -> OffsetCommitRequest:
    """Return a commit with names and ids; each version sends one of both."""
    found: dict[tuple[str, TopicId], list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), value in offsets.items():
        found.setdefault((topic, value.topic_id), []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=value.offset,
                committed_leader_epoch=value.leader_epoch,
                committed_metadata=value.metadata,
            )
        )
    topics = (
        OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=tuple(partitions))
        for (name, topic_id), partitions in found.items()
    )
    return OffsetCommitRequest(group_id=group_id, member_id="", topics=tuple(topics))


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


def _log_fault(failure: Failure) -> None:
    logger.error("internal error: %s", failure.getTraceback())
