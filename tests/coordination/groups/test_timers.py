"""Timers: deadlines as data."""

import random

from kshim.coordination.groups.timers import STALE_CHARACTERS, TimerKey, TimerKind, Timers

A, B, C = (TimerKey(TimerKind.MEMBER, "group", name) for name in "abc")


def test_timers_come_due_in_the_order_of_their_deadlines() -> None:
    timers = Timers()
    for key, deadline_ms in ((B, 20), (A, 10), (C, 30)):
        timers.arm(key, deadline_ms)
    assert timers.next_deadline_ms() == 10
    assert list(timers.due(9)) == []
    assert list(timers.due(20)) == [A, B]
    assert timers.next_deadline_ms() == 30
    assert list(timers.due(99)) == [C]
    assert timers.next_deadline_ms() is None


def test_a_timer_that_came_due_is_disarmed() -> None:
    timers = Timers()
    timers.arm(A, 10)
    assert timers.deadline_ms(A) == 10
    assert list(timers.due(10)) == [A]
    assert timers.deadline_ms(A) is None
    assert list(timers.due(99)) == []


def test_arming_again_replaces_the_deadline_both_ways() -> None:
    timers = Timers()
    timers.arm(A, 10)
    timers.arm(A, 30)
    timers.arm(B, 30)
    timers.arm(B, 10)
    assert list(timers.due(10)) == [B]
    assert list(timers.due(29)) == []
    assert list(timers.due(30)) == [A]
    assert list(timers.due(99)) == []


def test_a_cancelled_timer_never_comes_due_even_when_it_was_next() -> None:
    timers = Timers()
    for key in (A, B, C):
        timers.arm(key, 10)
    due = timers.due(10)
    assert next(due) == A
    timers.cancel(B)
    assert list(due) == [C]


def test_the_next_deadline_may_be_early_but_is_never_late() -> None:
    timers = Timers()
    timers.arm(A, 10)
    timers.arm(A, 30)
    early = timers.next_deadline_ms()
    assert early is not None
    assert early <= 30
    assert list(timers.due(10)) == []
    assert timers.next_deadline_ms() == 30


def test_a_timer_armed_while_others_come_due_is_seen() -> None:
    timers = Timers()
    timers.arm(A, 10)
    due = timers.due(10)
    assert next(due) == A
    timers.arm(A, 10)
    assert next(due) == A
    timers.arm(A, 11)
    assert list(due) == []


def test_random_use_gives_what_a_dictionary_gives() -> None:
    chance = random.Random(7)
    timers, expected = Timers(), dict[TimerKey, int]()
    keys = [TimerKey(TimerKind.MEMBER, "group", str(n)) for n in range(30)]
    now_ms = 0
    for _ in range(20_000):
        key = chance.choice(keys)
        if chance.random() < 0.6:
            expected[key] = now_ms + chance.randrange(50)
            timers.arm(key, expected[key])
        elif chance.random() < 0.5:
            expected.pop(key, None)
            timers.cancel(key)
        else:
            now_ms += chance.randrange(10)
            due = [key for key, deadline_ms in expected.items() if deadline_ms <= now_ms]
            assert sorted(timers.due(now_ms)) == sorted(due)
            for key in due:
                del expected[key]
        assert timers.deadline_ms(key) == expected.get(key)
        next_ms = timers.next_deadline_ms()
        assert not expected or (next_ms is not None and next_ms <= min(expected.values()))


def test_cancelled_timers_do_not_pile_up() -> None:
    """A group that is joined and left again and again leaves nothing behind."""
    timers = Timers()
    for n in range(100_000):
        key = TimerKey(TimerKind.MEMBER, "group", str(n))
        timers.arm(key, 1_000_000 + n)
        timers.cancel(key)
    assert len(timers._heap) < 200
    assert len(timers._queued_ms) < 200


def test_the_ids_of_cancelled_timers_do_not_pile_up() -> None:
    """Not even beside many that are live."""
    timers = Timers()
    for n in range(1_000):
        timers.arm(TimerKey(TimerKind.MEMBER, "g", f"live-{n}"), 1_000)
    for n in range(1_000):
        key = TimerKey(TimerKind.MEMBER, "g", f"{n}-".ljust(30_000, "m"))
        timers.arm(key, 1_000)
        timers.cancel(key)
        assert timers.characters == sum(len(key.member_id) for _, _, key in timers._heap)
        assert timers.characters < 2 * STALE_CHARACTERS
    assert len(list(timers.due(1_000))) == 1_000
    assert timers.characters == 0
