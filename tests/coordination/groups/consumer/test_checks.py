"""Heartbeats that no group can answer; cases 6 to 12."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.coordination.groups.consumer.checks import check_heartbeat
from kshim.coordination.groups.consumer.refused import Refused
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import World, owned

JOIN: dict[str, Any] = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 5_000,
    "topic_partitions": (),
    "subscribed_topic_names": ("foo",),
}


def refusal(version: int = 1, assignors: tuple[str, ...] = ("range",), **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(**{"group_id": "g", "member_epoch": 1, **fields})
    try:
        check_heartbeat(request, version, assignors)
    except Refused as refused:
        return refused.error, refused.message
    return None


def invalid(message: str) -> tuple[ErrorCode, str]:
    return ErrorCode.INVALID_REQUEST, message


@pytest.mark.parametrize("epoch", [0, 1, -1, -2])
@pytest.mark.parametrize("member_id", ["", " \t"])
def test_6_no_member_id(epoch: int, member_id: str) -> None:
    assert refusal(member_id=member_id, member_epoch=epoch) == invalid("MemberId can't be empty.")


@pytest.mark.parametrize("group_id", ["", "   "])
def test_7_no_group_id(group_id: str) -> None:
    assert refusal(member_id="m", group_id=group_id) == invalid("GroupId can't be empty.")


def test_8_a_join_says_all_that_is_needed() -> None:
    assert refusal(**JOIN) is None
    assert refusal(**{**JOIN, "rebalance_timeout_ms": -1}) == invalid(
        "RebalanceTimeoutMs must be provided in first request."
    )
    for partitions in (None, owned(foo=(1,))):
        assert refusal(**{**JOIN, "topic_partitions": partitions}) == invalid(
            "TopicPartitions must be empty when (re-)joining."
        )
    no_topics = {**JOIN, "subscribed_topic_names": None}
    assert refusal(**no_topics) == invalid(
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    )
    assert refusal(**no_topics, subscribed_topic_regex="") is None


def test_8_other_rebalance_timeouts_are_taken() -> None:
    assert refusal(**{**JOIN, "rebalance_timeout_ms": -7}) is None


def test_9_blank_ids() -> None:
    assert refusal(member_id="m", instance_id="") == invalid("InstanceId can't be empty.")
    assert refusal(member_id="m", rack_id=" ") == invalid("RackId can't be empty.")


def test_10_an_unknown_assignor() -> None:
    assert refusal(member_id="m", server_assignor="range") is None
    assert refusal(member_id="m", server_assignor="bar") == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor bar is not supported. Supported assignors: range.",
    )
    assert refusal(assignors=("uniform", "range"), member_id="m", server_assignor="")[1] == (
        "ServerAssignor  is not supported. Supported assignors: uniform, range."
    )


def test_11_epochs_below_zero() -> None:
    assert refusal(member_id="m", member_epoch=-2) == invalid("InstanceId can't be null.")
    assert refusal(member_id="m", member_epoch=-2, instance_id="i") is None
    assert refusal(member_id="m", member_epoch=-3) == invalid("MemberEpoch is invalid.")


def test_12_below_v1_a_join_needs_no_member_id() -> None:
    assert refusal(0, **{**JOIN, "member_id": ""}) is None
    assert refusal(0, member_id="", member_epoch=-2, instance_id="i") is None
    for epoch in (1, -1):
        assert refusal(0, member_id="", member_epoch=epoch) == invalid("MemberId can't be empty.")


def test_the_first_fault_counts() -> None:
    all_wrong: dict[str, Any] = {"member_id": "", "group_id": "", "instance_id": "", "rack_id": ""}
    found = []
    for field in all_wrong:
        found.append(refusal(**all_wrong, server_assignor="bar")[1])
        all_wrong[field] = "right"
    assert found == [
        "MemberId can't be empty.",
        "GroupId can't be empty.",
        "InstanceId can't be empty.",
        "RackId can't be empty.",
    ]


def test_texts_that_no_record_can_hold() -> None:
    long = "x" * 32_768
    for field in ({"member_id": long}, {"member_id": "m", "rack_id": long}):
        assert refusal(**field) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert refusal(**{**JOIN, "subscribed_topic_names": (long,)}) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_a_subscription_that_no_record_can_hold() -> None:
    world = World(message_max_bytes=10_000)
    names = tuple(f"topic-{number:04}" for number in range(1_000))
    answer = world.join("m", *names)
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert world.groups() == {}
    assert world.join("m", *names[:500]).error_code == 0
