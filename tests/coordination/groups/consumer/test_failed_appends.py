"""Consumer groups whose decisions fail, or are not stored by the journal; cases 4, 13, 45 and 141."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.consumer.writing import Writing
from kshim.storage.interfaces import StorageError, StorageFull
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordination.groups.consumer.members import SESSION_S, G, Members
from tests.coordination.groups.consumer.mixed import subscription
from tests.coordination.groups.consumer.world import FOO
from tests.coordination.held_runtime import error, result


@pytest.fixture
def members() -> Members:
    return Members()


@pytest.mark.parametrize("why", [StorageError("no disk"), StorageFull("the disk is full")])
def test_4_13_a_join_that_is_not_stored_is_refused_and_forgotten(members: Members, why: StorageError) -> None:
    joining = members.member(0)
    members.journal.fail(why)
    assert error(joining) == ErrorCode.NOT_COORDINATOR
    assert result(members.member(2)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2


def test_45_topics_are_looked_at_again_after_a_write_that_was_lost(members: Members) -> None:
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2
    members.topics.put("foo", 4)
    members.runtime.topic_changed("foo", "has more partitions")
    members.journal.holds = True
    members.clock.advance(0)
    assert members.journal.writes, "the new epoch is not stored yet"
    members.journal.fail()
    members.journal.holds = False
    answer = result(members.member(2))
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 3)
    (assigned,) = answer.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (FOO, (0, 1, 2, 3))


class Bug(Exception):
    """Stands for a fault in the coordinator."""


def fails(*_: object) -> None:
    raise Bug


def test_a_join_that_fails_half_way_is_forgotten(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2
    with monkeypatch.context() as broken:
        broken.setattr(Writing, "put_current", fails)
        with pytest.raises(Bug):
            members.member(0, "n")
    members.clock.advance(0)
    assert [member.member_id for member in members.members()] == ["m"]
    assert result(members.member(2)).member_epoch == 2, "no epoch has begun"
    assert result(members.member(0, "n")).member_epoch == 3


def test_an_end_of_a_session_that_fails_half_way_comes_again(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2
    with monkeypatch.context() as broken:
        broken.setattr(Writing, "begin_epoch", fails)
        members.clock.advance(SESSION_S)
    members.clock.advance(0)
    assert [member.member_id for member in members.members()] == ["m"]
    members.clock.advance(SESSION_S)
    assert members.members() == ()


def test_141_a_classic_member_whose_join_is_not_stored(members: Members) -> None:
    members.journal.holds = False
    assert result(members.member(0)).member_epoch == 2
    members.journal.holds = True
    request = JoinGroupRequest(
        group_id=G,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription("foo")),),
    )
    joining = members.submit(request, 3)
    members.journal.fail()
    assert error(joining) == ErrorCode.NOT_COORDINATOR
    members.journal.holds = False
    assert [member.member_id for member in members.members()] == ["m"]
    members.clock.advance(40)
    assert result(members.member(2)).error_code == ErrorCode.NONE, "no timer of the other member is left"
