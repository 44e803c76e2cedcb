"""Heartbeat in every version."""

import pytest
from twisted.internet.defer import Deferred

from kshim.api.heartbeat import heartbeat
from kshim.api.sync_group import sync_group
from kshim.turns import Turn
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.sync_group import SyncGroupRequest
from tests.api.groups import Groups, join, versions
from tests.api.harness import context, later, result


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


def beats(groups: Groups, member_id: str, turn: Turn, software: str = "librdkafka 2.12.1") -> object:
    """The answer to a heartbeat of a client of this name, which may come later."""
    sender = context(4, turn)
    assert sender.client is not None
    sender.client.software = software
    request = HeartbeatRequest(group_id="group", generation_id=1, member_id=member_id)
    return heartbeat(groups.broker, sender, request)


def test_the_answer_waits_for_a_rebalance() -> None:
    groups = Groups()
    answer = later(beats(groups, groups.member(), Turn()))
    assert isinstance(answer, Deferred)
    assert not answer.called
    groups.send(join())
    newcomer = groups.send(join())[0].member_id
    groups.send(join(member_id=newcomer))
    assert result(answer).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_answer_waits_until_another_request_follows() -> None:
    groups, turn = Groups(), Turn()
    answer = beats(groups, groups.member(), turn)
    turn.fire()
    assert result(answer).error_code == ErrorCode.NONE


def test_the_answer_does_not_wait_if_another_request_has_followed() -> None:
    groups, turn = Groups(), Turn()
    turn.fire()
    assert result(beats(groups, groups.member(), turn)).error_code == ErrorCode.NONE


def test_the_answer_does_not_wait_for_other_clients_or_where_it_is_switched_off() -> None:
    groups = Groups()
    assert result(beats(groups, groups.member(), Turn(), "ruby 1.0")).error_code == ErrorCode.NONE
    groups = Groups(group_heartbeat_park_enable=False)
    assert result(beats(groups, groups.member(), Turn())).error_code == ErrorCode.NONE


def test_a_broker_that_stops_answers() -> None:
    groups, turn = Groups(), Turn()
    answer = beats(groups, groups.member(), turn)
    groups.runtime.stop()
    assert result(answer).error_code == ErrorCode.NOT_COORDINATOR
    turn.fire()


@pytest.mark.parametrize("software", ["librdkafka 2.12.1", "other 1"])
def test_the_client_is_known_by_its_member(software: str) -> None:
    """So that the member stays in its group while time is moved ahead and its client is connected."""
    groups = Groups()
    member_id = groups.member()
    sender = context(4)
    assert sender.client is not None
    sender.client.software = software
    for request, function in (
        (SyncGroupRequest(group_id="group", generation_id=1, member_id=member_id), sync_group),
        (HeartbeatRequest(group_id="group", generation_id=1, member_id=member_id), heartbeat),
    ):
        sender.client.member = None
        function(groups.broker, sender, request)
        known = sender.client.member
        assert known is not None
        assert (known.group_id, known.member_id) == ("group", member_id)
