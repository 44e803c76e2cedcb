"""What is said of a failover: a line for all shards that it moves, and their number."""

from __future__ import annotations

import logging

import pytest
from twisted.internet.task import Clock

from kshim.upstream.shards.failovers import GATHER_S, Failovers


@pytest.fixture
def failovers(caplog: pytest.LogCaptureFixture) -> Failovers:
    caplog.set_level(logging.INFO)
    return Failovers(Clock(), "groups", lambda: "50 of the 50 that it is to lead")


def pass_s(failovers: Failovers, for_s: float) -> None:
    clock = failovers._clock
    assert isinstance(clock, Clock)
    clock.advance(for_s)


def test_fifty_shards_make_one_line(failovers: Failovers, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(50):
        failovers.led()
        pass_s(failovers, GATHER_S / 100)
    pass_s(failovers, GATHER_S)
    assert caplog.messages == ["took over 50 shards of groups; leads 50 of the 50 that it is to lead"]
    assert (failovers.taken_over, failovers.lost) == (50, 0)


def test_the_reasons_of_a_loss_are_counted(failovers: Failovers, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        failovers.no_longer_led("another process leads it")
    failovers.no_longer_led("not answered within 10 s")
    pass_s(failovers, GATHER_S)
    assert caplog.messages == [
        "lost 4 shards of groups: another process leads it (3), not answered within 10 s (1)"
    ]
    assert caplog.records[0].levelname == "WARNING"
    failovers.no_longer_led("another process leads it")
    pass_s(failovers, GATHER_S)
    assert caplog.messages[1:] == ["lost 1 shards of groups: another process leads it (1)"]
    assert failovers.lost == 5


def test_what_was_not_said_is_said_at_the_stop(
    failovers: Failovers, caplog: pytest.LogCaptureFixture
) -> None:
    failovers.led()
    failovers.stop()
    failovers.stop()
    assert len(caplog.messages) == 1
    clock = failovers._clock
    assert isinstance(clock, Clock)
    assert not clock.getDelayedCalls()
