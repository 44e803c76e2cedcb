"""LeaveGroup: one member below v3, a list of members from v3 on."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from tests.api.groups import Groups, versions


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
class TestEveryVersion:
    def test_a_member_and_a_stranger(self, version: int) -> None:
        """[96]"""
        groups = Groups()
        member_id = groups.member()
        for name, error in (("stranger", ErrorCode.UNKNOWN_MEMBER_ID), (member_id, ErrorCode.NONE)):
            if version < 3:
                expected = LeaveGroupResponse(error_code=error)
            else:
                member = MemberResponse(member_id=name, group_instance_id=None, error_code=error)
                expected = LeaveGroupResponse(members=(member,))
            assert groups.ask(request(name), version) == expected

    def test_an_empty_group_id(self, version: int) -> None:
        """[105]"""
        expected = LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        assert Groups().ask(request("m", group_id=""), version) == expected


def request(member_id: str, group_id: str = "group") -> LeaveGroupRequest:
    """Names the member in both ways; each version uses one of them."""
    return LeaveGroupRequest(
        group_id=group_id, member_id=member_id, members=(MemberIdentity(member_id=member_id),)
    )
