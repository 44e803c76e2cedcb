"""Records that wait to be written into the topic of rebalances, and what is known of groups meanwhile."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from kshim.coordination.groups.rebalance_record import Part, Rebalance, Who
from kshim.coordination.groups.trigger import Trigger
from kshim.recorder import topic
from kshim.recorder.topic import MOST_WAITING_BYTES, RebalanceTopic
from tests.recorder.groups import assignment


class Busy:
    """Never gets to what it is to do."""

    def run(self, function: object) -> Deferred[Any]:
        return Deferred()


@pytest.fixture
def written() -> RebalanceTopic:
    nothing = cast(Any, None)
    return RebalanceTopic(nothing, nothing, cast(Any, Busy()), nothing)


def rebalance(group_id: str, partitions: int = 0, subscription: bytes = b"") -> Rebalance:
    part = Part(Who("m"), after=assignment(*range(partitions)), subscription=subscription, assigned_ms=0)
    return Rebalance(
        group_id, Trigger.MEMBER_JOINED, (), "", "", 0, protocol_type="consumer", parts={"m": part}
    )


def test_what_waits_is_bounded_in_bytes(written: RebalanceTopic, caplog: pytest.LogCaptureFixture) -> None:
    for n in range(30):
        written.add(rebalance(f"g{n}", subscription=bytes(1_000_000)))
    waiting = written._waiting
    assert 10 < len(waiting) < 20
    assert sum(each.size for each in waiting) <= MOST_WAITING_BYTES
    dropped = [message for _, level, message in caplog.record_tuples if level == logging.WARNING]
    assert len(dropped) == 30 - 1 - len(waiting)  # the first one is being written


def test_the_partitions_of_all_groups_are_bounded(
    written: RebalanceTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "MOST_PARTITIONS", 100)
    for n in range(10):
        written._encode([rebalance(f"g{n}", partitions=30)])
    assert list(written._ownership) == ["g7", "g8", "g9"]
    written._encode([rebalance("g7", partitions=30), rebalance("g10", partitions=30)])
    assert list(written._ownership) == ["g9", "g7", "g10"]
    assert written._partitions == 90
    written._encode([rebalance("large", partitions=101)])
    assert (list(written._ownership), written._partitions) == ([], 0)
