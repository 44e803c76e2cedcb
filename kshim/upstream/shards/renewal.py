"""Keeps the copied offsets at the upstream for as long as kshim keeps its own.

The upstream deletes offsets by its own retention, which does not know kshim's groups. So from time to time
kshim looks at all groups, a few at a time. It compares their offsets with those at the upstream, and sends
again what is due.

If a recent offset differs at the upstream, the former leader may not have sent it, or an older request may
have arrived late, after that leader was cut off. So the groups of a shard that was taken over are looked at
several times. If an old offset differs, or one is further at the upstream that had taken kshim's, somebody
else has committed it there. It stays, as the group may have moved back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import CancelledError, Deferred

from kshim.callers.once import Once
from kshim.coordination.groups.offsets import is_of_another_topic
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.interfaces import Groups
from kshim.storage.clock import Timer, TimerClock, after
from kshim.turns.slices import others_first
from kshim.upstream.shards.mirrored import MOST_AT_ONCE, MirroredOffsets, Offset, answered_offset, offset_of
from kshim.upstream.there import describe_there
from kshim.upstream.upstream_groups import FETCH, UpstreamGroups, offsets_of
from schemas.internal_topics.group_metadata_log import OffsetCommitValue
from schemas.messages.offset_fetch import OffsetFetchResponsePartitions

if TYPE_CHECKING:
    from twisted.python.failure import Failure


logger = logging.getLogger(__name__)

LOOK_S = 300.0
"""The longest time between two looks at all groups."""
LOOKS_A_RETENTION = 8
RENEWALS_A_RETENTION = 4
SOON_S = 5.0
"""How long after a shard was taken over its groups are first looked at."""
SOON_AGAIN_S, OFTEN_S = 15.0, 60.0
"""The time between the looks that follow, and for how long they are so frequent."""
PACE_S = 0.5
GROUPS_AT_ONCE, OFFSETS_AT_ONCE = 100, 2_000
COMPARED_AT_ONCE = 500
RECENT_MS = 10 * 60_000
"""A younger commit is sent again whatever the upstream has: the former leader may not have sent it."""


def is_due(
    here: OffsetCommitValue,
    there: Offset | None,
    now_ms: int,
    sent_ms: int,
    renew_ms: int,
    *,
    was_taken: bool = False,
) -> bool:
    """True if an offset has to be sent to the upstream, which has `there`.

    sent_ms: when it was last sent, as far as is known. renew_ms: how long it need not be sent again.
    was_taken: True if the upstream is known to have taken it.
    """
    if there is None:
        return True
    age_ms = now_ms - here.commit_timestamp
    if there != offset_of(here):
        return not is_foreign(here, there, now_ms, was_taken=was_taken)
    return age_ms >= renew_ms and now_ms - sent_ms >= renew_ms


def is_foreign(
    here: OffsetCommitValue, there: Offset | None, now_ms: int, *, was_taken: bool = False
) -> bool:
    """True if somebody else has committed the upstream's offset. A smaller one may be a late request of the
    former leader.
    """
    if there is None or there == offset_of(here):
        return False
    is_further = was_taken and there[0] > here.offset
    return is_further or now_ms - here.commit_timestamp >= RECENT_MS


class Renewal:
    """Looks at the groups that this process coordinates."""

    def __init__(
        self,
        clock: TimerClock,
        now_ms: Callable[[], int],
        groups: Groups,
        upstream: UpstreamGroups,
        mirrored: MirroredOffsets,
        retention_ms: Callable[[], Deferred[int]],
        once: Once,
    ) -> None:
        """now_ms: returns the time of commits. retention_ms: returns how long the upstream keeps offsets."""
        self._clock = clock
        self._now_ms = now_ms
        self._groups = groups
        self._upstream = upstream
        self._mirrored = mirrored
        self._retention_ms = retention_ms
        self._once = once
        self._sent_ms: dict[str, int] = {}
        """When the offsets of each group were last sent again."""
        self._running: Deferred[None] | None = None
        self._next: Timer | None = None
        self._often_until_s = 0.0
        self._is_stopped = False

    def soon(self) -> None:
        """Look in a moment, and a few times more, because shards were taken over."""
        self._often_until_s = self._clock.seconds() + OFTEN_S
        self._look_in(SOON_S)

    def stop(self) -> None:
        """Stop looking."""
        self._is_stopped = True
        if self._next is not None and self._next.active():
            self._next.cancel()
        if self._running is not None:
            self._running.cancel()

    # ---- inside

    def _look_in(self, for_s: float) -> None:
        if self._is_stopped:
            return
        if self._next is not None and self._next.active():
            if self._next.getTime() <= self._clock.seconds() + for_s:
                return
            self._next.cancel()
        self._next = self._clock.callLater(for_s, self._look)

    def _look(self) -> None:
        if self._running is not None:
            self._look_in(SOON_S)
            return
        self._running = Deferred.fromCoroutine(self._look_at_all())
        self._running.addErrback(_log_unless_stopped).addCallback(self._looked)

    def _looked(self, _: object) -> None:
        self._running = None

    async def _look_at_all(self) -> None:
        retention_ms = await self._retention_ms()
        is_often = self._clock.seconds() < self._often_until_s
        self._look_in(SOON_AGAIN_S if is_often else min(LOOK_S, retention_ms / 1000 / LOOKS_A_RETENTION))
        group_ids = self._groups.group_ids()
        self._sent_ms = {each: self._sent_ms[each] for each in group_ids if each in self._sent_ms}
        for some in self._in_pieces(group_ids):
            await self._look_at(some, retention_ms // RENEWALS_A_RETENTION)
            await after(self._clock, PACE_S)
            while self._mirrored.unsent >= MOST_AT_ONCE:
                await after(self._clock, PACE_S)

    def _in_pieces(self, group_ids: Iterable[str]) -> Iterable[Sequence[str]]:
        """Divide the groups into pieces with a few thousand offsets each."""
        some: list[str] = []
        offsets = 0
        for group_id in group_ids:
            group = self._groups.see(group_id)
            if group is None:
                continue
            if len(some) >= GROUPS_AT_ONCE or (some and offsets + len(group.committed) > OFFSETS_AT_ONCE):
                yield some
                some, offsets = [], 0
            some.append(group_id)
            offsets += len(group.committed)
        if some:
            yield some

    async def _look_at(self, group_ids: Sequence[str], renew_ms: int) -> None:
        seen = [group for each in group_ids if (group := self._groups.see(each)) is not None]
        used = [group.group_id for group in seen if group.members]
        committed = [group.group_id for group in seen if group.committed]
        fetching = self._upstream.ask_many(FETCH, committed)
        for there in await describe_there(self._upstream, used):
            if not there.error:
                self._mirrored.note_use(there.group_id, is_used=there.is_used)
        for fetched in await fetching:
            if not fetched.error_code:
                await self._compare(fetched.group_id, offsets_of(fetched), renew_ms)

    async def _compare(
        self, group_id: str, there: Mapping[Partition, OffsetFetchResponsePartitions], renew_ms: int
    ) -> None:
        group = self._groups.see(group_id)
        partitions = () if group is None else tuple(group.partitions)
        now_ms, sent_ms = self._now_ms(), self._sent_ms.get(group_id, 0)
        is_sent = False
        for first in range(0, len(partitions), COMPARED_AT_ONCE):
            if first:
                await others_first(self._clock)
            group = self._groups.see(group_id)
            if group is None:
                return
            for where in partitions[first : first + COMPARED_AT_ONCE]:
                here = group.committed.get(where)
                theirs = answered_offset(there.get(where))
                if here is None or is_of_another_topic(here, self._mirrored.topic_id_of(where[0])):
                    continue
                was_taken = self._mirrored.was_taken(group_id, where, here)
                if is_due(here, theirs, now_ms, sent_ms, renew_ms, was_taken=was_taken):
                    self._mirrored.send_again(group_id, where, here)
                    is_sent = True
                elif is_foreign(here, theirs, now_ms, was_taken=was_taken):
                    self._log_foreign(group_id, where, here, theirs)
        if is_sent:
            self._sent_ms[group_id] = now_ms

    def _log_foreign(
        self, group_id: str, where: Partition, here: OffsetCommitValue, there: Offset | None
    ) -> None:
        assert there is not None
        logger.log(
            self._once.level(("foreign", group_id)),
            "group %s: a client has committed offset %d of %s-%d at the upstream; kshim has %d, and does not"
            " overwrite it",
            *(group_id, there[0], *where, here.offset),
        )


def _log_unless_stopped(failure: Failure) -> None:
    if failure.check(CancelledError) is None:
        logger.error("internal error: %s", failure.getTraceback())
