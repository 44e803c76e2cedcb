"""Groups as they are at the upstream, in either protocol."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.control.commands import SteeringError
from kshim.upstream.adoption import Adoption
from kshim.upstream.there import GroupThere, describe_there
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.upstream.kafka_groups import Group, KafkaGroups


class Asking:
    """Asks an upstream that has one group of each kind."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.kafka = KafkaGroups()
        self.kafka.groups = {
            "classic": Group("Stable"),
            "empty": Group("Empty"),
            "new": Group("Stable", "consumer"),
            "left": Group("Empty", "consumer"),
        }
        clock: Any = self.clock
        self.upstream = UpstreamGroups(clock, self.kafka)

    def result(self, coroutine: Any) -> Any:
        """The result of a coroutine; raises what it raises."""
        found: list[Any] = []
        Deferred.fromCoroutine(coroutine).addBoth(found.append)
        for _ in range(20):
            self.clock.advance(0)
        return found[0]

    def describe(self, *group_ids: str) -> list[GroupThere]:
        found: list[GroupThere] = self.result(describe_there(self.upstream, group_ids))
        return found


def test_groups_of_both_protocols_are_described_in_order() -> None:
    it = Asking()
    found = it.describe("new", "absent", "classic", "empty", "left")
    assert [(each.group_id, each.state, len(each.members)) for each in found] == [
        ("new", "Stable", 1),
        ("absent", "Dead", 0),
        ("classic", "Stable", 1),
        ("empty", "Empty", 0),
        ("left", "Empty", 0),
    ]
    assert [each.is_used for each in found] == [True, False, True, False, False]
    assert [each.exists for each in found] == [True, False, True, True, True]


def test_only_groups_that_are_no_classic_ones_are_asked_for_twice() -> None:
    it = Asking()
    it.describe("classic", "new", "empty")
    (asked,) = it.kafka.asked(ConsumerGroupDescribeRequest)
    assert asked.group_ids == ("new",)


def test_an_upstream_without_the_protocol_has_no_such_group() -> None:
    it = Asking()
    it.kafka.serves_consumer_groups = False
    (found,) = it.describe("new")
    assert (found.exists, found.is_used, found.error) == (False, False, ErrorCode.NONE)


def test_an_error_is_no_state() -> None:
    it = Asking()
    it.kafka.error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    (found,) = it.describe("new")
    assert (found.error, found.exists, found.is_used) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, False, False)


class Unused:
    """kshim's own coordinators: the group has no members there."""

    async def without_members(self, group_id: str, wanted: str) -> None:
        pass


@pytest.mark.parametrize("group_id", ["classic", "new"])
def test_a_group_with_members_at_the_upstream_is_not_adopted(group_id: str) -> None:
    it = Asking()
    coordinators: Any = Unused()
    nothing: Any = None
    failed = it.result(Adoption(it.upstream, coordinators, nothing, tuple, lambda _: "").adopt(group_id))
    assert failed.check(SteeringError)
    assert str(failed.value) == (
        f"group {group_id} is Stable at the upstream: stop its members, which would go on there"
    )
