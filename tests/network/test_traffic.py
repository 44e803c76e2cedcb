"""Each request is counted once, with the time until its reply, however that comes."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.callers import Refused
from kshim.network.frames import Beginning
from kshim.network.traffic import EACH, Traffic
from kshim.turns import Turn
from kshim.turns.promise import Promise
from schemas.api_key import ApiKey
from tests.network.frames import frame
from tests.network.one_connection import Server

HEARTBEAT = ApiKey.HEARTBEAT.to_bytes(2) + b"rest"
PRODUCE = ApiKey.PRODUCE.to_bytes(2) + b"rest"


def ask(traffic: Traffic, frame: bytes, reply: Any) -> Turn:
    def answer(*_: object) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    turn = Turn()
    assert traffic.measured(answer, None)(frame, None, turn) is reply
    return turn


def counts(traffic: Traffic) -> dict[str, int]:
    return {name: durations.measured().counts[-1] for name, durations in traffic.durations()}


def test_replies_at_once() -> None:
    traffic = Traffic()
    assert ask(traffic, HEARTBEAT, b"reply").made is None
    assert ask(traffic, PRODUCE, None).made is None  # acks=0
    assert counts(traffic) == {"Produce": 1, "Heartbeat": 1}
    assert (traffic.received_bytes, traffic.sent_bytes) == (12, 5)


@pytest.mark.parametrize("before", [0, 1])
def test_a_reply_that_comes_later(before: int) -> None:
    traffic = Traffic()
    for _ in range(before):
        ask(traffic, PRODUCE, b"")
    turn = ask(traffic, PRODUCE, Promise())
    assert sum(counts(traffic).values()) == before
    assert turn.made is not None
    turn.made(b"reply")
    assert (counts(traffic), traffic.sent_bytes) == ({"Produce": before + 1}, 5)


def test_refusals() -> None:
    traffic = Traffic()
    with pytest.raises(Refused):
        ask(traffic, b"", Refused("no frame"))
    turn = ask(traffic, PRODUCE, Promise())
    assert turn.made is not None
    turn.made(Refused("the disk"))
    assert (traffic.refused, counts(traffic)) == (2, {})


def test_all_of_a_request_counts_whose_rest_follows() -> None:
    traffic = Traffic()
    ask(traffic, Beginning(PRODUCE, 1_000_000), Promise())
    assert traffic.received_bytes == 1_000_000


def test_a_connection_tells_of_replies_that_come_later() -> None:
    server = Server()
    traffic = Traffic()
    later: dict[bytes, Promise[Any]] = {PRODUCE: Promise(), HEARTBEAT: Promise()}
    measured = traffic.measured(lambda _, asked, *__: later[asked], None)
    server.connection.shared.answer = measured
    server.connection.dataReceived(frame(PRODUCE) + frame(HEARTBEAT))
    assert counts(traffic) == {}
    later[PRODUCE].answer_alone(b"produced")
    assert (counts(traffic), traffic.sent_bytes) == ({"Produce": 1}, 8)
    later[HEARTBEAT].answer_alone(Refused("no"))
    assert (counts(traffic), traffic.refused) == ({"Produce": 1}, 1)


@pytest.mark.parametrize("count", [1, EACH - 1, EACH, EACH + 1, 5 * EACH + 3])
def test_no_answer_is_missed_although_few_are_timed(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(len(looks) * 0.0002)
        return looks[-1]

    monkeypatch.setattr("kshim.network.traffic.perf_counter", clock)
    traffic = Traffic()
    measured = traffic.measured(lambda *_: b"reply", None)
    for _ in range(count):
        measured(HEARTBEAT, None, None)
    assert len(looks) == 2 * (1 + (count - 1) // EACH)
    ((_, durations),) = traffic.durations()
    counts_, sum_s = durations.measured()
    assert (counts_[-1], round(sum_s, 6)) == (count, round(count * 0.0002, 6))
    assert counts(traffic) == {"Heartbeat": count}


def test_answers_of_both_kinds_are_told_apart() -> None:
    traffic = Traffic()
    replies: list[Any] = [b"", Promise(), b"", b"", Promise(), b"", None]
    measured = traffic.measured(lambda reply, *_: reply.pop(0), replies)
    turns = [Turn() for _ in range(7)]
    for turn in turns:
        measured(HEARTBEAT, None, turn)
    assert counts(traffic) == {"Heartbeat": 5}
    for turn in turns:
        if turn.made is not None:
            turn.made(b"")
    assert counts(traffic) == {"Heartbeat": 7}


@pytest.mark.parametrize("before", [0, 1, EACH - 1, EACH])
def test_a_refusal_is_not_counted_among_the_answers(before: int) -> None:
    traffic = Traffic()
    replies: list[Any] = [b""] * before + [Refused("no"), b"", b""]

    def answer(replies: list[Any], *_: object) -> Any:
        reply = replies.pop(0)
        if isinstance(reply, Refused):
            raise reply
        return reply

    measured = traffic.measured(answer, replies)
    for number in range(before + 3):
        if number == before:
            with pytest.raises(Refused):
                measured(HEARTBEAT, None, None)
        else:
            measured(HEARTBEAT, None, None)
    assert (counts(traffic), traffic.refused) == ({"Heartbeat": before + 2}, 1)
