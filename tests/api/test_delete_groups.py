"""DeleteGroups: each group on its own."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from tests.api.groups import Groups, join, versions


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_one_that_cannot_be_deleted_leaves_the_others_be(version: int) -> None:
    """[121]"""
    groups = Groups()
    groups.member("full")
    groups.ask(join("empty"))
    answer = groups.ask(DeleteGroupsRequest(groups_names=("full", "empty", "none", "", "empty")), version)
    assert answer.results == (
        DeletableGroupResult(group_id="full", error_code=ErrorCode.NON_EMPTY_GROUP),
        DeletableGroupResult(group_id="empty", error_code=ErrorCode.NONE),
        DeletableGroupResult(group_id="none", error_code=ErrorCode.GROUP_ID_NOT_FOUND),
        DeletableGroupResult(group_id="", error_code=ErrorCode.GROUP_ID_NOT_FOUND),
    )


def test_no_groups() -> None:
    assert Groups().ask(DeleteGroupsRequest(groups_names=())).results == ()
