"""Shards that do not answer."""

from __future__ import annotations

import pytest

from kshim.upstream.shards.reach import DOUBTFUL_S, PROBE_S, SILENT_S, Reach

POLL_S = 0.1


@pytest.fixture
def reach() -> Reach:
    return Reach(3, POLL_S)


def poll(reach: Reach, for_s: float, *answering: int) -> None:
    for _ in range(round(for_s / POLL_S)):
        reach.poll()
        for shard in answering:
            reach.heard(shard)


def test_a_shard_without_an_answer_is_doubtful_then_silent(reach: Reach) -> None:
    poll(reach, DOUBTFUL_S - POLL_S, 0)
    assert (reach.doubtful(), reach.silent()) == (set(), set())
    poll(reach, POLL_S, 0)
    assert (reach.doubtful(), reach.silent()) == ({1, 2}, set())
    poll(reach, SILENT_S - DOUBTFUL_S, 0, 2)
    assert (reach.doubtful(), reach.silent()) == ({1}, {1})


def test_one_answer_is_enough(reach: Reach) -> None:
    poll(reach, SILENT_S, 0, 1)
    assert reach.silent() == {2}
    reach.heard(2)
    assert (reach.doubtful(), reach.silent()) == (set(), set())


def test_the_shards_of_others_are_asked_now_and_then(reach: Reach) -> None:
    asked = [reach.poll() for _ in range(round(5 * PROBE_S / POLL_S))]
    assert asked.count(True) == 5
