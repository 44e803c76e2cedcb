"""ListGroups, version by version."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest
from tests.api.groups import Groups, versions


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_what_is_listed(version: int) -> None:
    """[118]"""
    groups = Groups()
    groups.member("one")
    answer = groups.ask(ListGroupsRequest(), version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.groups == (
        ListedGroup(
            group_id="one",
            protocol_type="consumer",
            group_state="Stable" if version >= 4 else "",
            group_type="classic" if version >= 5 else "",
        ),
    )


def test_filters() -> None:
    groups = Groups()
    groups.member("one")
    assert (
        len(groups.ask(ListGroupsRequest(states_filter=("stable",), types_filter=("classic",))).groups) == 1
    )
    assert groups.ask(ListGroupsRequest(states_filter=("Empty",))).groups == ()
