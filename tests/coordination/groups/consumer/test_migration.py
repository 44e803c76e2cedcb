"""A group goes over to the consumer protocol and back while its members work; case 136."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.consumer.member import MemberState
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequestProtocol
from tests.coordination.groups.consumer.commits import commit
from tests.coordination.groups.consumer.mixed import (
    NONE,
    REBALANCING,
    Mixed,
    assignment,
    had,
    subscription,
)
from tests.coordination.groups.consumer.world import FOO, G, shown

ILLEGAL, STALE, UNSUPPORTED = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNSUPPORTED_VERSION,
)
OLD_VERSIONS = range(2, 9)
"""The versions of OffsetCommit before members of the consumer protocol could use it."""


class Migration(Mixed):
    """A classic group whose only member has all of foo, and a member of the consumer protocol that joins."""

    def __init__(self, instance_id: str | None) -> None:
        super().__init__()
        self.instance_id = instance_id
        self.old = self.classic(instance_id=instance_id)

    def join_again(self, *owned: int) -> int:
        """The classic member joins again; return its generation."""
        metadata = subscription("foo", foo=owned) if owned else subscription("foo")
        protocols = (JoinGroupRequestProtocol(name="range", metadata=metadata),)
        token = self.join_classic(self.old, instance_id=self.instance_id, version=5, protocols=protocols)
        answer = self.answers[token]
        assert (answer.error_code, answer.member_id) == (NONE, self.old)
        return int(answer.generation_id)

    def sync_again(self, generation: int) -> dict[str, set[int]] | ErrorCode:
        """The classic member's assignment, or the error."""
        answer = self.sync_classic(self.old, generation, group_instance_id=self.instance_id)
        return ErrorCode(answer.error_code) if answer.error_code else had(answer.assignment)

    def check_commits(self, generation: int, epoch: int) -> None:
        """Both members commit in all versions: the classic one with its generation, the other with its epoch,
        from the version on that knows epochs.
        """
        for version in (*OLD_VERSIONS, 9):
            assert commit(self, self.old, generation, version) == NONE
            assert commit(self, self.old, generation + 1, version) == ILLEGAL
            assert commit(self, "new", epoch, version) == (UNSUPPORTED if version < 9 else NONE)
        assert commit(self, "new", epoch + 1) == STALE


@pytest.mark.parametrize("instance_id", [None, "i"], ids=["dynamic", "static"])
@pytest.mark.parametrize("is_cooperative", [False, True], ids=["eager", "cooperative"])
def test_136_there_and_back(is_cooperative: bool, instance_id: str | None) -> None:
    world = Migration(instance_id)
    first = world.join("new", "foo")
    assert (first.error_code, first.member_epoch, shown(first)) == (NONE, 2, {})
    world.check_commits(1, 2)
    assert world.beat_classic(world.old, 1) == REBALANCING
    assert world.beat_classic(world.old, 2) == ILLEGAL
    assert world.sync_again(1) == REBALANCING
    if is_cooperative:
        assert world.join_again(*range(6)) == 1, "it has partitions to give up"
        assert world.sync_again(1) == {"foo": {0, 1, 2}}
        assert world.member(world.old).state is MemberState.UNREVOKED_PARTITIONS
        assert world.beat_classic(world.old, 1) == REBALANCING
        assert world.heartbeat("new", 2).assignment is None, "they are not free yet"
        world.check_commits(1, 2)
    assert world.join_again(*((0, 1, 2) if is_cooperative else ())) == 2
    assert world.sync_again(2) == {"foo": {0, 1, 2}}
    assert world.beat_classic(world.old, 2) == NONE
    assert shown(world.heartbeat("new", 2)) == {FOO: {3, 4, 5}}
    assert world.group().state == "Stable"
    world.check_commits(2, 2)
    assert world.heartbeat("new", -1).member_epoch == -1
    assert world.groups() == {}, "the group is a classic one again"
    assert world.beat_classic(world.old, 2) == REBALANCING
    token = world.join_classic(world.old, instance_id=instance_id, version=5)
    world.advance(3_000)
    generation = world.answers[token].generation_id
    assert generation > 2
    plan = {world.old: assignment(foo=range(6))}
    answer = world.sync_classic(world.old, generation, plan, group_instance_id=instance_id)
    assert had(answer.assignment) == {"foo": set(range(6))}
    assert commit(world, world.old, generation) == NONE
    assert list(world.coordinator._shards[0].groups) == [G]
