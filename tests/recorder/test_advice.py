"""The advice that people get after a rebalance."""

from __future__ import annotations

import pytest

from kshim.coordination.groups.rebalance_record import Departure, Part, Rebalance, Who
from kshim.coordination.groups.trigger import Gone, LastContact, Trigger
from kshim.recorder.advice import (
    BY_TRIGGER,
    EXPIRED,
    FROZEN,
    HEARS_LATE,
    JOINS_LATE,
    POLLS_LATE,
    advice,
)
from kshim.recorder.ownership import Effect
from kshim.recorder.story import story

A = Who("a-1", "a", "/10.0.0.7")
NO_EFFECT = Effect((), (), {})


def rebalance(
    trigger: Trigger, part: Part | None = None, came_back: Departure | None = None, **facts: int
) -> Rebalance:
    parts = {} if part is None else {"a-1": part}
    return Rebalance(
        "g", trigger, (A,), "", "", 10_000, ended_ms=10_010, parts=parts, came_back=came_back, **facts
    )


def gone(how: Gone, contact: LastContact | None) -> Part:
    return Part(A, gone=how, gone_ms=10_000, heard_ms=4_000, departure=Departure(how, 10_000, contact))


@pytest.mark.parametrize("trigger", Trigger)
def test_each_cause_has_advice(trigger: Trigger) -> None:
    expected = EXPIRED[None] if trigger is Trigger.SESSION_EXPIRED else BY_TRIGGER[trigger]
    part = gone(Gone.EXPIRED, None) if trigger is Trigger.SESSION_EXPIRED else None
    assert advice(rebalance(trigger, part)) == expected
    assert expected.endswith(".")


@pytest.mark.parametrize(
    ("contact", "words"),
    [
        (None, ""),
        (
            LastContact.CLOSED,
            "The connection of a had been closed: its process was killed, or ended without closing its "
            "consumer.",
        ),
        (LastContact.LOST, "The connection of a had been lost: its host did not answer any more."),
        (LastContact.ENDED, "The server had closed the connection of a."),
        (
            LastContact.OPEN,
            "The connection of a stayed open, but silent: its process stood still, or the network loses what "
            "it sends.",
        ),
    ],
)
def test_how_a_session_expired(contact: LastContact | None, words: str) -> None:
    record = rebalance(Trigger.SESSION_EXPIRED, gone(Gone.EXPIRED, contact))
    expired = "a was not heard of any more, and its session expired, 6.000 s after its last sign of life."
    told = story(record, NO_EFFECT)
    assert told[1] == expired
    assert told[2:] == [*([words] if words else []), *told[-1:]]
    assert advice(record) == EXPIRED[contact]


def test_a_session_that_an_administrator_ended() -> None:
    assert advice(rebalance(Trigger.SESSION_EXPIRED, gone(Gone.ENDED, None))).startswith("Nothing")


@pytest.mark.parametrize("contact", [None, LastContact.CLOSED, LastContact.OPEN])
def test_a_member_that_left(contact: LastContact | None) -> None:
    record = rebalance(Trigger.MEMBER_LEFT, gone(Gone.LEFT, contact))
    stayed = contact is LastContact.OPEN
    words = "a stayed connected: its program probably exceeded max.poll.interval.ms, or unsubscribed."
    assert (words in story(record, NO_EFFECT)) is stayed
    assert advice(record) == (POLLS_LATE if stayed else BY_TRIGGER[Trigger.MEMBER_LEFT])


@pytest.mark.parametrize(
    ("how", "words", "helps"),
    [
        (
            Gone.LEFT,
            "It is the same program that left 3.000 s before, and stayed connected: it probably exceeded "
            "max.poll.interval.ms, or unsubscribed.",
            POLLS_LATE,
        ),
        (Gone.EXPIRED, "It is the same program that lost its session 3.000 s before.", FROZEN),
        (Gone.EVICTED, "It is the same program that was removed 3.000 s before.", POLLS_LATE),
    ],
)
def test_a_program_that_comes_back(how: Gone, words: str, helps: str) -> None:
    before = Departure(how, 7_000, LastContact.OPEN)
    record = rebalance(Trigger.MEMBER_JOINED, came_back=before)
    assert story(record, NO_EFFECT)[1] == words
    assert advice(record) == helps


def test_a_member_that_holds_the_others_up() -> None:
    slow = Part(A, notified_ms=10_100, joined_ms=14_000)
    assert advice(rebalance(Trigger.MEMBER_JOINED, slow)) == JOINS_LATE
    late = Part(A, notified_ms=12_900, joined_ms=12_901)
    assert advice(rebalance(Trigger.MEMBER_JOINED, late)) == HEARS_LATE
    assert advice(rebalance(Trigger.MEMBER_LEFT, gone(Gone.EVICTED, None))) == POLLS_LATE
