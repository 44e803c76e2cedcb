"""SyncGroup: the form of its answers in each version, and what a v5 request must name."""

import pytest

from kshim.api.sync_group import sync_group
from kshim.callers.context import NamedMember
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.api.groups import Groups, join, versions
from tests.api.harness import context


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_an_assignment_in_every_version(version: int) -> None:
    """[86]"""
    groups = Groups()
    member_id = groups.ask(join(), 3).member_id
    plan = (SyncGroupRequestAssignment(member_id=member_id, assignment=b"all"),)
    request = SyncGroupRequest(
        group_id="group",
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignments=plan,
    )
    answer = groups.ask(request, version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
    named = (answer.protocol_type, answer.protocol_name)
    assert named == (("consumer", "range") if version >= 5 else (None, None))


@pytest.mark.parametrize(
    "fields",
    [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}],
    ids=["none", "no name", "no type"],
)
def test_v5_must_name_type_and_protocol_before_anything_else_is_looked_at(fields: dict[str, str]) -> None:
    request = SyncGroupRequest(group_id="", generation_id=1, member_id="nobody", **fields)
    expected = SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert Groups().ask(request, 5) == expected
    assert Groups().ask(request, 4) == SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)


@pytest.mark.parametrize("fields", [{"protocol_name": "sticky"}, {"protocol_type": "connect"}])
def test_v5_must_name_the_right_ones(fields: dict[str, str]) -> None:
    """[86]"""
    groups = Groups()
    member_id = groups.member()
    named = {"protocol_type": "consumer", "protocol_name": "range"} | fields
    request = SyncGroupRequest(group_id="group", generation_id=1, member_id=member_id, **named)
    assert groups.ask(request).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_its_connection_keeps_the_names_of_the_member_alone() -> None:
    asked = context(4)
    assert asked.client is not None
    plan = (SyncGroupRequestAssignment(member_id="m", assignment=bytes(1_000_000)),)
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=plan)
    sync_group(Groups().broker, asked, request)
    assert asked.client.member == NamedMember("g", "m")
