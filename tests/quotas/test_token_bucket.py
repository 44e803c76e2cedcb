"""Tokens as Kafka 4.2 counts them (KIP-599)."""

from __future__ import annotations

from kshim.quotas.rate import MOST_THROTTLE_MS, Window
from kshim.quotas.token_bucket import TokenBucket

USUAL = Window(11, 1000)


def test_a_full_bucket_has_what_comes_in_the_whole_window() -> None:
    bucket = TokenBucket(USUAL)
    bucket.take(22, 2, 1000)
    assert bucket.throttle_ms(2, 1000) == 0
    bucket.take(1, 2, 1000)
    assert bucket.throttle_ms(2, 1000) == 500


def test_more_may_be_taken_than_there_is_and_comes_back_in_time() -> None:
    bucket = TokenBucket(USUAL)
    bucket.take(111, 1, 0)
    assert bucket.throttle_ms(1, 0) == 100_000
    assert bucket.throttle_ms(1, 40_250) == 59_750
    assert bucket.throttle_ms(1, 100_000) == 0


def test_it_never_has_more_than_fits() -> None:
    bucket = TokenBucket(USUAL)
    bucket.take(11, 1, 0)
    bucket.take(12, 1, 1_000_000)
    assert bucket.throttle_ms(1, 1_000_000) == 1000


def test_it_is_idle_when_it_is_full() -> None:
    bucket = TokenBucket(USUAL)
    assert bucket.is_idle(0)
    bucket.take(5, 0.5, 0)
    assert not bucket.is_idle(9_999)
    assert bucket.is_idle(10_000)


def test_a_throttle_time_fits_into_its_field() -> None:
    bucket = TokenBucket(USUAL)
    bucket.take(100_000, 1e-9, 0)
    assert bucket.throttle_ms(1e-9, 0) == MOST_THROTTLE_MS
