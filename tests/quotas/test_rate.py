"""Rates as Kafka 4.2 takes them: the figures are those of its own throttle_time_ms for the same history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.quotas.rate import MOST_THROTTLE_MS, Rate, Window

USUAL = Window(11, 1000)


@pytest.mark.parametrize(
    ("sizes", "per_s", "throttle_ms"),
    [
        ([9120], 1000, 0),
        ([10_000], 1000, 0),
        ([10_001], 1000, 1),
        ([9120, 2118], 1000, 1238),
        ([1126], 1, 1_116_000),
        ([1], 2**63, 0),
    ],
)
def test_what_is_recorded_at_once_counts_as_if_it_took_ten_seconds(
    sizes: list[int], per_s: float, throttle_ms: int
) -> None:
    rate = Rate(USUAL)
    for size in sizes:
        rate.record(size, 5_000)
    assert rate.throttle_ms(per_s, 5_000) == throttle_ms


def test_the_rate_is_the_quota_once_the_throttle_time_is_over() -> None:
    rate = Rate(USUAL)
    rate.record(15_000, 0)
    rate.record(0, 400)
    assert rate.throttle_ms(1000, 400) == 4600
    rate.record(0, 5000)
    assert rate.throttle_ms(1000, 5000) == 5000, "five samples are complete, and nine are counted at least"


def test_more_than_ten_samples_count_with_all_their_time() -> None:
    rate = Rate(USUAL)
    for second in range(12):
        rate.record(1000, second * 1000)
    assert rate.throttle_ms(1000, 11_000) == 12_000 - 11_000
    assert rate.throttle_ms(1000, 11_999) == 0 + 1


def test_a_sample_goes_when_nothing_was_added_to_it_for_the_whole_window() -> None:
    rate = Rate(USUAL)
    rate.record(50_000, 0)
    rate.record(50_000, 999)
    assert rate.throttle_ms(1000, 11_998) == 100_000 - 11_998
    assert rate.throttle_ms(1000, 11_999) == 0


def test_what_is_taken_back_does_not_count() -> None:
    rate = Rate(USUAL)
    rate.record(20_000, 0)
    assert rate.throttle_ms(1000, 0) == 10_000
    rate.record(-20_000, 0)
    assert rate.throttle_ms(1000, 0) == 0


def test_one_sample() -> None:
    rate = Rate(Window(1, 2000))
    rate.record(1, 0)
    assert rate.throttle_ms(1, 0) == 999, "a millisecond stands for no time"
    assert rate.throttle_ms(1, 500) == 500


def test_a_throttle_time_fits_into_its_field() -> None:
    rate = Rate(USUAL)
    rate.record(10**12, 0)
    assert rate.throttle_ms(1, 0) == MOST_THROTTLE_MS


def test_it_is_idle_when_nothing_of_it_counts() -> None:
    rate = Rate(USUAL)
    assert rate.is_idle(0)
    rate.record(1, 0)
    assert not rate.is_idle(10_999)
    assert rate.is_idle(11_000)


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 5000)), max_size=60), st.integers(1, 2000))
def test_it_counts_as_kafka_s_samples_in_their_places(steps: list[tuple[int, int]], per_s: int) -> None:
    """Kafka's samples stand in a ring, and are emptied where they are."""
    rate, ring, now_ms = Rate(USUAL), Ring(), 0
    for after_ms, value in steps:
        now_ms += after_ms
        rate.record(value, now_ms)
        ring.record(value, now_ms)
        assert rate.throttle_ms(per_s, now_ms) == ring.throttle_ms(per_s, now_ms)


class Ring:
    """Twelve samples, of which one is written to: what it was begun with, its last time, and its sum."""

    def __init__(self) -> None:
        self.samples: list[list[float]] = []
        self.at = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self.samples:
            self.samples.append([now_ms, now_ms, 0])
        elif now_ms - self.samples[self.at][0] >= 1000:
            self.at = (self.at + 1) % 12
            if self.at == len(self.samples):
                self.samples.append([])
            self.samples[self.at] = [now_ms, now_ms, 0]
        self.samples[self.at][1] = now_ms
        self.samples[self.at][2] += value

    def throttle_ms(self, per_s: float, now_ms: int) -> int:
        self.samples = [
            [now_ms, now_ms, 0] if now_ms - sample[1] >= 11_000 else sample for sample in self.samples
        ]
        elapsed_ms = now_ms - min(sample[0] for sample in self.samples)
        elapsed_ms = max(1, elapsed_ms + max(0, 10 - elapsed_ms // 1000) * 1000)
        rate = sum(sample[2] for sample in self.samples) / (elapsed_ms / 1000)
        return int((rate - per_s) / per_s * elapsed_ms + 0.5) if rate > per_s else 0
