"""DescribeGroups, version by version."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from tests.api.groups import Groups, versions

NOT_ASKED = -(1 << 31)
READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 8, 6, 10, 11


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_known_and_unknown_groups_in_the_order_asked_for(version: int) -> None:
    """[116]"""
    groups = Groups()
    member_id = groups.member()
    unknown, known, again = groups.ask(DescribeGroupsRequest(groups=("x", "group", "x")), version).groups
    assert (known.error_code, known.group_state, known.protocol_data) == (ErrorCode.NONE, "Stable", "range")
    assert [member.member_id for member in known.members] == [member_id]
    assert known.members[0].client_host == "/127.0.0.1"
    assert known.authorized_operations == NOT_ASKED
    if version < 6:
        assert unknown == DescribedGroup(group_id="x", group_state="Dead")
    else:
        assert unknown == DescribedGroup(
            group_id="x",
            group_state="Dead",
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message="Group x not found.",
        )
    assert again == unknown


@pytest.mark.parametrize("version", [v for v in versions(ApiKey.DESCRIBE_GROUPS) if v >= 3])
def test_what_the_caller_may_do_to_a_group_when_it_asks(version: int) -> None:
    groups = Groups()
    groups.member()
    request = DescribeGroupsRequest(groups=("group", "x"), include_authorized_operations=True)
    known, unknown = groups.ask(request, version).groups
    everything = sum(1 << bit for bit in (READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
    assert known.authorized_operations == everything == 3400
    assert unknown.authorized_operations == (everything if version < 6 else NOT_ASKED)


def test_no_groups() -> None:
    assert Groups().ask(DescribeGroupsRequest(groups=())).groups == ()
