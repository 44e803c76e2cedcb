"""A history is replayed until both servers agree: by Apache Kafka, also by one in place of kshim."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from integration.differential.playing import run as playing
from integration.differential.playing.player import Asked, Target, Transcript
from integration.differential.playing.run import Outcome, Run, Stage
from integration.differential.playing.stalls import Watch
from integration.differential.words.groups import heartbeat
from integration.differential.words.history import Ask, History
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatResponse

OLD, NEW = Target("old", 1, {}), Target("new", 2, {})
STEP = heartbeat("a")
NONE, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
PLAYS = 6


def judged(
    monkeypatch: pytest.MonkeyPatch,
    old: Sequence[ErrorCode],
    new: Sequence[ErrorCode],
    *,
    are_releases: bool,
) -> Outcome:
    """The outcome of a heartbeat that the two servers answer with these errors, by turns."""
    errors = {OLD.port: itertools.cycle(old), NEW.port: itertools.cycle(new)}

    async def play(steps: Sequence[Ask], era: int, group: str, target: Target, *_: object) -> Transcript:
        asked = Asked(0, steps[0], 4, steps[0].request)
        asked.take_answer(HeartbeatResponse(error_code=next(errors[target.port])))
        return Transcript(target, group, seen=[asked])

    monkeypatch.setattr(playing, "play", play)
    history = History("a heartbeat", (1,), (STEP,))
    stage = Stage((OLD, NEW), (Watch(), Watch()), are_releases=are_releases)
    return asyncio.run(stage.perform(Run(history, 0), PLAYS))


def test_apache_kafka_plays_until_it_answers_as_kshim(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = judged(monkeypatch, [UNKNOWN, UNKNOWN, NONE], [NONE], are_releases=False)
    assert outcome.is_as_expected
    assert outcome.kafka_plays == 4


def test_kshim_has_one_play(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = judged(monkeypatch, [UNKNOWN], [NONE, UNKNOWN], are_releases=False)
    (found,) = outcome.untolerated
    assert (found.apache_kafka, found.kshim) == (
        {"throttle_time_ms": 0, "error_code": "UNKNOWN_MEMBER_ID"},
        {"throttle_time_ms": 0, "error_code": "NONE"},
    )
    assert outcome.kafka_plays == PLAYS


def test_another_release_plays_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, [UNKNOWN], [NONE, UNKNOWN], are_releases=True).is_as_expected
    assert judged(monkeypatch, [NONE, FENCED], [UNKNOWN, FENCED], are_releases=True).is_as_expected


def test_releases_that_never_agree_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = judged(monkeypatch, [NONE, FENCED], [UNKNOWN], are_releases=True)
    assert len(outcome.untolerated) == 1
    assert outcome.kafka_plays == PLAYS
