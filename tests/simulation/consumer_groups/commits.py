"""Offsets that simulated members commit and fetch, with their present epoch or an earlier one.

An acknowledged offset is not lost, and a member gets no offset before it. A member commits only what it has
had since the epoch that it names; the group refuses all else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kshim.coordination.groups.consumer.member import Member
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.simulation.consumer_groups.world import GROUP, World

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.client import Client

VERSION = 9
MOST_REMEMBERED = 20
NEVER = 1 << 31
ACCEPTED = (ErrorCode.NONE,)
REFUSED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Claim(NamedTuple):
    """The partitions that a member takes to be its own."""

    member_id: str
    epoch: int
    topic: str
    partition: int


class Commits:
    """The commits of one history. Offsets count up, so a later commit has a larger one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._claims: list[Claim] = []
        self._acknowledged: dict[tuple[str, int], int] = {}
        self._last = 0

    def commit(self, client: Client) -> None:
        """A member commits an offset; sometimes late, when it may have lost the partition."""
        claim = self._claim(client)
        if claim is None:
            return
        client.says_more()
        expected = _answers_to_commit(self._world, claim)
        self._last += 1
        offset = self._last
        partition = OffsetCommitRequestPartition(partition_index=claim.partition, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=claim.epoch,
            member_id=claim.member_id,
            topics=(OffsetCommitRequestTopic(name=claim.topic, partitions=(partition,)),),
        )

        def hear(answer: OffsetCommitResponse) -> None:
            error = ErrorCode(answer.topics[0].partitions[0].error_code)
            assert error in expected, f"{claim} is answered {error!r}, not {expected}"
            self._world.counts["refused commits" if error else "commits"] += 1
            if not error:
                key = claim.topic, claim.partition
                self._acknowledged[key] = max(offset, self._acknowledged.get(key, 0))

        self._world.ask(VERSION, client.name, request, hear)

    def fetch(self, client: Client) -> None:
        """A member asks for an offset."""
        claim = self._claim(client)
        if claim is None:
            return
        client.says_more()
        expected = _answers_to_fetch(self._world, claim)
        least = self._acknowledged.get((claim.topic, claim.partition), -1)
        topics = (OffsetFetchRequestTopics(name=claim.topic, partition_indexes=(claim.partition,)),)
        request = OffsetFetchRequestGroup(
            group_id=GROUP, member_id=claim.member_id, member_epoch=claim.epoch, topics=topics
        )

        def hear(answer: OffsetFetchResponseGroup) -> None:
            error = ErrorCode(answer.error_code)
            assert error in expected, f"the fetch of {claim} is answered {error!r}, not {expected}"
            if not error:
                self._world.counts["fetched offsets"] += 1
                (found,) = answer.topics[0].partitions
                assert found.committed_offset >= least, f"{claim} has {found}, {least} was acknowledged"

        self._world.ask(VERSION, client.name, request, hear)

    def are_kept(self) -> None:
        """Every acknowledged offset, or a later one, is the group's."""
        stored = self._world.shard.hard_state.offsets.get(GROUP, {})
        for partition, offset in self._acknowledged.items():
            found = stored.get(partition)
            assert found is not None, f"{offset} was acknowledged for {partition}, and is lost"
            assert found.offset >= offset, f"{offset} was acknowledged for {partition}, {found} is there"

    def _claim(self, client: Client) -> Claim | None:
        chance, topics = self._world.chance, self._world.topics
        found = ((topics.with_id(topic_id), index) for topic_id, index in sorted(client.owned))
        now = [
            Claim(client.member_id, client.epoch, topic.name, index)
            for topic, index in found
            if topic is not None and client.epoch > 0
        ]
        self._claims = [*self._claims, *now][-MOST_REMEMBERED:]
        if now and chance.random() < 0.6:
            return chance.choice(now)
        return chance.choice(self._claims) if self._claims else None


def _answers_to_commit(world: World, claim: Claim) -> Collection[ErrorCode]:
    """The errors that a commit may be answered with, as the groups are now."""
    group = world.shard.consumer.groups.get(GROUP)
    if group is not None:
        member = group.members.get(claim.member_id)
        if member is None:
            return (ErrorCode.UNKNOWN_MEMBER_ID,)
        is_mine = claim.epoch == member.epoch or _since(world, member, claim) <= claim.epoch < member.epoch
        return ACCEPTED if is_mine else (_stale(member),)
    classic = world.shard.groups.get(GROUP)
    if classic is None or claim.member_id not in classic.members or claim.epoch != classic.generation:
        return REFUSED
    return (*ACCEPTED, ErrorCode.REBALANCE_IN_PROGRESS)


def _answers_to_fetch(world: World, claim: Claim) -> Collection[ErrorCode]:
    """The errors that a fetch may be answered with. A classic group answers everybody."""
    group = world.shard.consumer.groups.get(GROUP)
    if group is None:
        return ACCEPTED
    member = group.members.get(claim.member_id)
    if member is None:
        return (ErrorCode.UNKNOWN_MEMBER_ID,)
    return ACCEPTED if claim.epoch == member.epoch else (_stale(member),)


def _since(world: World, member: Member, claim: Claim) -> int:
    """The epoch since which the member has the partition; one after all others if it does not."""
    topic = world.topics.named(claim.topic)
    if topic is not None:
        for held in (member.assigned, member.revoking):
            since = held.get(topic.topic_id, {}).get(claim.partition)
            if since is not None:
                return since
    return NEVER


def _stale(member: Member) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
