"""Which requests a fault strikes, and how often."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kshim.faults.fault import WrongFault, fault_of
from kshim.faults.named import Kind, names
from kshim.faults.rules import Asked, Rules
from schemas.api_key import ApiKey
from schemas.header import RequestHeader

NAMED = {Kind.GROUP: "g", Kind.TOPIC: "t", Kind.MEMBER: "m"}


def asked(
    api_key: ApiKey = ApiKey.OFFSET_COMMIT, client_id: str | None = "c", can_carry: bool = True
) -> Asked:
    header = RequestHeader(api_key=api_key, client_id=client_id)
    return Asked(header, None, lambda kind: iter([NAMED[kind]]), lambda _: can_carry)


def strikes(count: int, at_s: float = 0, **given: Any) -> list[int]:
    """Which of so many equal requests a fault strikes."""
    rules = Rules()
    fault = fault_of({"drop": True, **given})
    rules.add(fault, Random(fault.seed), 0)
    return [number for number in range(1, count + 1) if rules.strike(asked(), at_s)]


@pytest.mark.parametrize(
    "conditions",
    [
        {"api": "Heartbeat"},
        {"client_id": "d"},
        {"not_client_id": "c"},
        {"group": "h"},
        {"topic": "u"},
        {"member": "n"},
        {"group": "g", "topic": "u"},
    ],
)
def test_each_condition_must_be_true(conditions: dict[str, Any]) -> None:
    assert strikes(1, **conditions) == []


def test_all_conditions_are_true() -> None:
    everything = {"api": "OffsetCommit", "client_id": "c", "not_client_id": "d"}
    assert strikes(2, **everything, group="g", topic="t", member="m") == [1, 2]


@pytest.mark.parametrize(
    ("given", "struck"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"once": True}, [1]),
        ({"times": 2}, [1, 2]),
        ({"nth": 3}, [3, 4, 5]),
        ({"nth": 3, "once": True}, [3]),
        ({"nth": 3, "times": 2}, [3, 4]),
        ({"nth": 6}, []),
    ],
)
def test_how_often(given: dict[str, Any], struck: list[int]) -> None:
    assert strikes(5, **given) == struck


def test_a_seed_repeats_a_run() -> None:
    one = strikes(1000, probability=0.2, seed=7)
    assert one == strikes(1000, probability=0.2, seed=7)
    assert one != strikes(1000, probability=0.2, seed=8)
    assert 150 < len(one) < 250
    assert strikes(1000, probability=0.2, seed=7, times=3) == one[:3]


def test_a_fault_is_over_after_its_time() -> None:
    assert strikes(1, 0.999, for_ms=1000) == [1]
    assert strikes(1, 1.0, for_ms=1000) == []


def test_a_request_that_cannot_carry_the_error_does_not_fit() -> None:
    rules = Rules()
    rule = rules.add(fault_of({"drop": True}), Random(), 0)
    assert rules.strike(asked(can_carry=False), 0) is None
    assert (rule.matched, rule.struck) == (0, 0)


def test_the_first_fault_that_strikes_is_the_only_one() -> None:
    rules = Rules()
    first = rules.add(fault_of({"drop": True, "nth": 2, "once": True}), Random(), 0)
    second = rules.add(fault_of({"delay_ms": 1}), Random(), 0)
    assert [rules.strike(asked(), 0) for _ in range(3)] == [second, first, second]
    assert [(rule.matched, rule.struck) for rule in rules] == [(2, 1), (2, 2)]


def test_faults_are_removed_by_number() -> None:
    rules = Rules()
    for _ in range(3):
        rules.add(fault_of({"drop": True}), Random(), 0)
    assert rules.remove(2).number == 2
    with pytest.raises(WrongFault, match="no fault 2; there are 1, 3"):
        rules.remove(2)
    assert rules.remove_all() == 2
    with pytest.raises(WrongFault, match="there are none"):
        rules.remove(1)
    assert rules.add(fault_of({"drop": True}), Random(), 0).number == 4


def test_what_requests_name_is_found_in_their_definitions() -> None:
    assert names(ApiKey.OFFSET_FETCH, Kind.GROUP) == (("group_id",), ("groups", "group_id"))
    assert names(ApiKey.PRODUCE, Kind.TOPIC) == (("topic_data", "name"), ("topic_data", "topic_id"))
    assert names(ApiKey.SYNC_GROUP, Kind.MEMBER) == (("member_id",),)
    assert names(ApiKey.LEAVE_GROUP, Kind.MEMBER) == (("member_id",), ("members", "member_id"))
    assert names(ApiKey.FETCH, Kind.TOPIC) == (("topics", "topic"), ("topics", "topic_id"))
    assert names(ApiKey.CREATE_TOPICS, Kind.TOPIC) == (("topics", "name"),)
    assert names(ApiKey.API_VERSIONS, Kind.GROUP) == ()
