"""Adopts the offsets that a group has committed at the upstream, when its first member joins here.

Otherwise a group that moves to kshim would begin where its clients' `auto.offset.reset` says: it would read
everything once more, or skip everything. A group that is known here may have been at the upstream meanwhile.
So its offsets are compared each time its first member joins. One that differs is adopted if the upstream has
taken the offset that kshim knows, as then somebody has committed there since. If it is not known whether the
upstream has taken it, an offset that was committed here lately stays: the upstream's may be an older one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred

from kshim.callers.bounded import forget_first
from kshim.coordination.groups.offsets import is_of_another_topic
from kshim.coordination.groups.pending_offsets import Partition
from kshim.turns.promise import Promise
from kshim.upstream.here import own_context
from kshim.upstream.link import LinkError
from kshim.upstream.shards.mirrored import Offset, answered_offset, offset_of
from kshim.upstream.shards.renewal import RECENT_MS
from kshim.upstream.there import describe_there
from kshim.upstream.upstream_groups import FETCH_STABLE, NOT_OURS_TO_SEE, offsets_of
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitValue
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from schemas.messages.offset_fetch import OffsetFetchResponseGroup, OffsetFetchResponsePartitions

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.coordination.group_runtime import GroupRuntime
    from kshim.coordination.groups.seen import SeenGroup
    from kshim.storage.clock import Clock
    from kshim.upstream.shards.mirrored import MirroredOffsets
    from kshim.upstream.their_groups import TheirGroups
    from kshim.upstream.topics import Topics
    from kshim.upstream.upstream_groups import UpstreamGroups


logger = logging.getLogger(__name__)

FRESH_S = 5.0
"""How long a group without members is not compared again: a client joins twice, the first time for an id."""
USED_S = 0.2
"""How long a group with members is not looked at again: many may join at once."""
MOST_LOOKS = 10_000
NO_GENERATION = -1
"""A version of OffsetCommit that names topics."""
ABSENT = ErrorCode.GROUP_ID_NOT_FOUND
"""The upstream's answer for a group of another kind, such as a share group, too."""

Offsets = Mapping[Partition, OffsetFetchResponsePartitions]


class _Look(NamedTuple):
    """The last look at a group."""

    at_s: float
    generation: int
    """NO_GENERATION if the group was not known here. It grows when the group gets and loses its members."""
    is_used: bool
    """True if it had members; else it was compared with the upstream's."""


class MovingIn:
    """Compares groups that come here with the upstream's."""

    def __init__(
        self,
        clock: Clock,
        groups: GroupRuntime,
        upstream: UpstreamGroups,
        topics: Topics,
        mirrored: MirroredOffsets | None,
        theirs: TheirGroups,
        *,
        is_enabled: bool = True,
    ) -> None:
        """clock: the time of commits. mirrored: knows what the upstream has taken; None if offsets are not
        copied there: then the offsets of groups that are known here stay. theirs: gets the groups whose
        offsets stay at the upstream. is_enabled: False to adopt nothing unless somebody asks for it.
        """
        self._clock = clock
        self._groups = groups
        self._upstream = upstream
        self._topics = topics
        self._mirrored = mirrored
        self.theirs = theirs
        self._is_enabled = is_enabled
        self._looks: dict[str, _Look] = {}
        """The last look at each group."""
        self._waiting: dict[str, list[Deferred[None]]] = {}
        """Who waits for a group that is being compared."""

    def before_join(self, group_id: str) -> Deferred[None] | None:
        """Adopt what the group's first member needs; None if nothing is left to do. Errbacks LinkError if it
        is not known what that is.
        """
        look, now_s = self._looks.get(group_id), self._clock.seconds()
        if not self._is_enabled or (look is not None and look.is_used and now_s < look.at_s + USED_S):
            return None
        group = self._groups.see(group_id)
        if group is not None and group.members:
            self._looked(group_id, group)
            return None
        is_fresh = look is not None and not look.is_used and now_s < look.at_s + FRESH_S
        if is_fresh and look is not None and look.generation == _generation(group):
            return None
        return None if group is not None and self._mirrored is None else self._adopted(group_id)

    def before_fetch(self, group_id: str) -> Deferred[None] | None:
        """Like `before_join`, for a client that asks for offsets and may be no member: only a group that is
        not known here needs anything.
        """
        return None if not self._is_enabled or self._groups.see(group_id) else self.before_join(group_id)

    def forget(self, group_id: str) -> None:
        """Compare the group when it comes next: it goes on at the upstream meanwhile."""
        self._looks.pop(group_id, None)

    def _looked(self, group_id: str, group: SeenGroup | None) -> None:
        is_used = group is not None and bool(group.members)
        self._looks.pop(group_id, None)
        self._looks[group_id] = _Look(self._clock.seconds(), _generation(group), is_used)
        forget_first(self._looks, MOST_LOOKS)

    def _adopted(self, group_id: str) -> Deferred[None]:
        adopted: Deferred[None] = Deferred()
        self._waiting.setdefault(group_id, []).append(adopted)
        if len(self._waiting[group_id]) == 1:
            adopting = Deferred.fromCoroutine(self._adopt(group_id))
            adopting.addBoth(self._tell, group_id)
        return adopted

    def _tell(self, result: Failure | None, group_id: str) -> None:
        for each in self._waiting.pop(group_id):
            each.callback(result)

    async def _adopt(self, group_id: str) -> None:
        try:
            newer = await self.newer_there(group_id)
            group = self._groups.see(group_id)
            is_there = self.theirs.has_consumers and group_id in self.theirs
            if newer and not is_there and (group is None or not group.members):
                await self.adopt(group_id, newer)
                logger.info(
                    "group %s joins here: it goes on with %d offsets that it has committed at the upstream",
                    *(group_id, len(newer)),
                )
        except LinkError as error:
            if self._groups.see(group_id) is None:
                raise
            logger.warning("group %s was not compared with the upstream's: %s", group_id, error)
        self._looked(group_id, self._groups.see(group_id))

    # ---- for commands, too

    async def newer_there(self, group_id: str) -> Offsets:
        """Return the offsets of the upstream that kshim does not have, or that are newer there. Raises
        LinkError.
        """
        fetched: OffsetFetchResponseGroup = await self._upstream.ask(FETCH_STABLE, group_id)
        if fetched.error_code in NOT_OURS_TO_SEE:
            logger.info("the upstream does not show kshim the offsets of group %s", group_id)
            return {}
        if fetched.error_code == ABSENT:
            return {}
        errors = {fetched.error_code, *(each.error_code for it in fetched.topics for each in it.partitions)}
        if errors != {ErrorCode.NONE}:
            names = ", ".join(sorted(ErrorCode(each).name for each in errors - {ErrorCode.NONE}))
            raise LinkError(f"the upstream's offsets of group {group_id}: {names}")
        there = offsets_of(fetched)
        await self._topics.learn(self._topics.missing({topic for topic, _ in there}))
        group = self._groups.see(group_id)
        known = {where: each for where, each in there.items() if where[0] in self._topics.by_name}
        if group is not None:
            return dict(self._newer(group, known))
        return {} if known and await self._is_of_streams(group_id) else known

    async def _is_of_streams(self, group_id: str) -> bool:
        """True if a group with offsets is neither a classic nor a consumer group."""
        (there,) = await describe_there(self._upstream, (group_id,))
        if there.error:
            raise LinkError(f"the upstream's group {group_id}: {ErrorCode(there.error).name}")
        if not there.exists:
            self.theirs.note(group_id)
        return not there.exists

    def _newer(
        self, group: SeenGroup, there: Offsets
    ) -> Iterator[tuple[Partition, OffsetFetchResponsePartitions]]:
        for where, each in there.items():
            here = group.committed.get(where)
            is_absent = here is None or is_of_another_topic(here, self._topics.id_of(where[0]))
            if is_absent or self._has_changed(group.group_id, where, here, answered_offset(each)):
                yield where, each

    def _has_changed(
        self, group_id: str, where: Partition, here: OffsetCommitValue | None, there: Offset | None
    ) -> bool:
        """True if the upstream's offset is another one, which was committed after the one here."""
        if here is None or there == offset_of(here):
            return False
        if self._mirrored is None or self._mirrored.is_unsent(group_id, where):
            return False
        age_ms = self._clock.seconds() * 1000 - here.commit_timestamp
        return age_ms >= RECENT_MS or self._mirrored.was_taken(group_id, where, here)

    async def adopt(self, group_id: str, offsets: Offsets) -> None:
        """Commit the upstream's offsets here. Returns when they are durable; raises LinkError."""
        answer = self._groups.submit(own_context(), commit_request(group_id, offsets))
        response: OffsetCommitResponse = await answer.deferred() if isinstance(answer, Promise) else answer
        errors = {each.error_code for topic in response.topics for each in topic.partitions}
        if errors - {ErrorCode.NONE}:
            names = ", ".join(sorted(ErrorCode(each).name for each in errors - {ErrorCode.NONE}))
            raise LinkError(f"the upstream's offsets of group {group_id} cannot be committed here: {names}")


def _generation(group: SeenGroup | None) -> int:
    return NO_GENERATION if group is None else group.generation


def commit_request(group_id: str, offsets: Offsets) -> OffsetCommitRequest:
    """Return a commit from outside the group, with the topics' names."""
    return OffsetCommitRequest(group_id=group_id, member_id="", topics=tuple(_topics(offsets)))


def _topics(offsets: Offsets) -> Iterable[OffsetCommitRequestTopic]:
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), each in offsets.items():
        partition = OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=each.committed_offset,
            committed_leader_epoch=each.committed_leader_epoch,
            committed_metadata=each.metadata,
        )
        by_topic.setdefault(topic, []).append(partition)
    for topic, partitions in by_topic.items():
        yield OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
