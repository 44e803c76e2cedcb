"""Valid faults, and the refusals of others."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.faults.fault import Close, Delay, Drop, Error, Fault, Slow, Stall, WrongFault, fault_of
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"api": "Heartbeat", "error": "NOT_COORDINATOR", "group": "g", "times": 2},
            Fault(action=Error(ErrorCode.NOT_COORDINATOR), api=ApiKey.HEARTBEAT, group="g", times=2),
        ),
        (
            {"api": "ConsumerGroupHeartbeat", "error": "FENCED_MEMBER_EPOCH", "group": "g", "member": "m"},
            Fault(
                action=Error(ErrorCode.FENCED_MEMBER_EPOCH),
                api=ApiKey.CONSUMER_GROUP_HEARTBEAT,
                group="g",
                member="m",
            ),
        ),
        ({"delay_ms": 500}, Fault(action=Delay(500))),
        ({"drop": True, "once": True}, Fault(action=Drop(), times=1)),
        ({"close": True}, Fault(action=Close(performs=False))),
        ({"close": "before"}, Fault(action=Close(performs=False))),
        ({"close": "after", "nth": 3}, Fault(action=Close(performs=True), nth=3)),
        ({"stall_ms": 1, "member": "m"}, Fault(action=Stall(1), member="m")),
        ({"bytes_per_s": 100, "not_client_id": "c"}, Fault(action=Slow(100), not_client_id="c")),
        (
            {"delay_ms": 1, "probability": 0.2, "seed": 7, "for_ms": 30_000, "topic": "t", "client_id": "c"},
            Fault(action=Delay(1), probability=0.2, seed=7, for_ms=30_000, topic="t", client_id="c"),
        ),
        ({"delay_ms": 1, "group": None, "drop": False, "once": False}, Fault(action=Delay(1))),
        ({"api": "offset_commit", "error": "not_coordinator"}, None),
        ({"api": "OFFSET-COMMIT", "error": "NOT_COORDINATOR"}, None),
    ],
)
def test_a_fault(given: dict[str, Any], fault: Fault | None) -> None:
    expected = Fault(action=Error(ErrorCode.NOT_COORDINATOR), api=ApiKey.OFFSET_COMMIT)
    assert fault_of(given) == (fault or expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a fault does one thing: one of error, delay_ms, drop, close, stall_ms, bytes_per_s"),
        ({"drop": True, "delay_ms": 1}, "one thing"),
        ({"drop": True, "speed": 1}, "no speed; it has error, "),
        ({"error": "NOT_CORDINATOR"}, "no error NOT_CORDINATOR; did you mean NOT_COORDINATOR"),
        ({"error": "NONE"}, "no error NONE"),
        ({"error": "x"}, "no error x; there are UNKNOWN_SERVER_ERROR, OFFSET_OUT_OF_RANGE"),
        ({"api": "Hartbeat", "drop": True}, "no API Hartbeat; did you mean Heartbeat"),
        ({"api": "PushTelemetry", "drop": True}, "no API PushTelemetry"),
        ({"api": "Fetch", "group": "g", "drop": True}, "Fetch names no group; these do: OffsetCommit"),
        ({"api": "Heartbeat", "topic": "t", "drop": True}, "Heartbeat names no topic; these do: Produce"),
        ({"api": "Fetch", "member": "m", "drop": True}, "Fetch names no member; these do: OffsetCommit"),
        ({"delay_ms": 0}, "delay_ms=0: expected a whole number from 1 to 3600000"),
        ({"delay_ms": 3_600_001}, "delay_ms=3600001"),
        ({"delay_ms": True}, "delay_ms=True: expected a whole number"),
        ({"stall_ms": "1"}, "stall_ms=1: expected a whole number"),
        ({"bytes_per_s": 0}, "bytes_per_s=0"),
        ({"drop": 1}, "drop=1: expected true"),
        ({"drop": True, "probability": 0}, "probability=0: expected a number above 0, up to 1"),
        ({"drop": True, "probability": 1.5}, "probability=1.5"),
        ({"drop": True, "times": 0}, "times=0"),
        ({"drop": True, "nth": 0}, "nth=0"),
        ({"drop": True, "for_ms": 0}, "for_ms=0"),
        ({"drop": True, "seed": -1}, "seed=-1"),
        ({"drop": True, "once": True, "times": 2}, "once or times, not both"),
        ({"close": "now"}, "close=now: expected before or after"),
        ({"drop": True, "group": 1}, "group=1: expected a text"),
        ({"drop": True, "group": "g\nh"}, "group='g\\nh': expected a text that can be printed"),
    ],
)
def test_what_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongFault) as wrong:
        fault_of(given)
    assert said in str(wrong.value)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"drop": True}, "drop for any request"),
        (
            {"api": "Heartbeat", "error": "NOT_COORDINATOR", "group": "g", "times": 2},
            "error NOT_COORDINATOR for Heartbeat, group g (2 times)",
        ),
        (
            {"stall_ms": 9, "not_client_id": "c", "nth": 3, "probability": 0.5, "seed": 7, "for_ms": 1500},
            "stall 9 ms for any request, not client id c "
            "(from request 3 on, probability 0.5, seed 7, for 1.5 s)",
        ),
    ],
)
def test_a_fault_in_words(given: dict[str, Any], text: str) -> None:
    assert str(fault_of(given)) == text
