"""How long a torture waits for a program that drains its records."""

from __future__ import annotations

from kshim.torture.settling import MOST, Patience


def test_a_program_that_stands_still_has_its_time_once() -> None:
    patience = Patience(settle_s=15, now_s=100)
    assert not patience.is_over(114.9)
    assert patience.is_over(115)


def test_a_program_that_gets_further_has_its_time_again() -> None:
    patience = Patience(settle_s=15, now_s=100)
    patience.saw(300, now_s=114)
    assert not patience.is_over(128.9)
    patience.saw(301, now_s=128)
    assert not patience.is_over(142.9)
    assert patience.is_over(143)


def test_a_program_that_repeats_its_records_gets_no_further() -> None:
    patience = Patience(settle_s=15, now_s=100)
    patience.saw(300, now_s=101)
    for now_s in range(102, 116):
        patience.saw(300, now_s)
    assert patience.is_over(116)


def test_a_program_that_crawls_is_not_waited_for_without_end() -> None:
    patience = Patience(settle_s=15, now_s=0)
    for now_s in range(MOST * 15):
        patience.saw(now_s, now_s)
        assert not patience.is_over(now_s)
    assert patience.is_over(MOST * 15)
