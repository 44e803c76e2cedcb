"""JoinGroup: the form of its answers in each version."""

import pytest

from kshim.api.join_group import join_group
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from tests.api.groups import Groups, join, versions
from tests.api.harness import advance, collect, context


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
class TestEveryVersion:
    def test_of_an_error(self, version: int) -> None:
        """[6] [14] [17]"""
        answer = Groups().ask(join("", member_id="me"), version)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
        assert (answer.generation_id, answer.leader, answer.member_id) == (-1, "", "me")
        assert answer.protocol_name == ("" if version < 7 else None)
        assert answer.protocol_type is None

    def test_of_a_member_id(self, version: int) -> None:
        """[4] [5]"""
        answer = Groups().ask(join(), version)
        if version < 4:
            assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
        else:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert answer.member_id.startswith("test-")

    def test_of_a_generation(self, version: int) -> None:
        groups = Groups()
        member_id = groups.ask(join(), 9).member_id
        answer = groups.ask(join(member_id=member_id), version)
        assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
        assert (answer.leader, answer.member_id) == (member_id, member_id)
        assert answer.protocol_name == "range"
        assert answer.protocol_type == ("consumer" if version >= 7 else None)
        assert [(member.member_id, member.metadata) for member in answer.members] == [(member_id, b"topics")]
        assert not answer.skip_assignment

    def test_of_a_group_that_is_full(self, version: int) -> None:
        groups = Groups(group_max_size=1)
        groups.member()
        answer = groups.ask(join(), version)
        assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_two_members_are_answered_together() -> None:
    groups = Groups()
    first = groups.member()
    second = groups.ask(join()).member_id
    parked = groups.send(join(member_id=second))
    assert parked == []
    answer = groups.ask(join(member_id=first))
    assert len(answer.members) == 2
    assert [(a.error_code, a.generation_id, a.members) for a in parked] == [(ErrorCode.NONE, 2, ())]


def test_the_client_is_known_by_the_id_that_it_is_given() -> None:
    """So that the member stays in its group while time is moved ahead and its client is connected."""
    groups, sender = Groups(), context(9)
    assert sender.client is not None
    seen = collect(join_group(groups.broker, sender, join()))
    advance(groups.broker)
    (answer,) = seen
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert sender.client.member is not None
    assert (sender.client.member.group_id, sender.client.member.member_id) == ("group", answer.member_id)
