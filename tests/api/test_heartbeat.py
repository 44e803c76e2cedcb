"""Heartbeat in every version."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest
from tests.api.groups import Groups, versions


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_a_member_and_a_stranger(version: int) -> None:
    groups = Groups()
    member_id = groups.member()
    for name, error in ((member_id, ErrorCode.NONE), ("stranger", ErrorCode.UNKNOWN_MEMBER_ID)):
        request = HeartbeatRequest(group_id="group", generation_id=1, member_id=name)
        assert groups.ask(request, version).error_code == error


def test_a_member_that_is_silent_goes() -> None:
    groups = Groups()
    request = HeartbeatRequest(group_id="group", generation_id=1, member_id=groups.member())
    groups.broker.clock.advance(9.9)
    assert groups.ask(request).error_code == ErrorCode.NONE
    groups.broker.clock.advance(10)
    assert groups.ask(request).error_code == ErrorCode.UNKNOWN_MEMBER_ID
