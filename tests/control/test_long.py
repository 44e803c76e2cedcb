"""JSON in pieces: what is sent, and how much of it while the other end does not read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from kshim.control.commands import Command
from kshim.control.connection import Connection
from kshim.control.long import PIECE_BYTES, RUN, Long, in_order, pieces
from kshim.turns import Turn
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices


async def rows(count: int, *, fails: bool = False) -> AsyncIterator[Any]:
    for number in range(count):
        yield {"row": number, "text": "x" * 100}
    if fails:
        raise ValueError("a fault of ours")


class Full(StringTransport):
    """Asks for a pause after each write."""

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.producer is not None:
            self.producer.pauseProducing()


class Other:
    """The other end of a control socket, which asks for one command."""

    def __init__(self, result: Long) -> None:
        self.transport = StringTransport()
        self.request = Connection({"ask": Command(lambda: result)})
        self.request.makeConnection(self.transport)
        self.request.lineReceived(b'["ask", []]')


def test_an_answer_in_pieces_is_one_line() -> None:
    inner = Long({"name": "a"}, {"rows": rows(2)})
    other = Other(Long({"now_ms": 7}, {"first": rows(1000), "none": rows(0), "inner": _one(inner)}))
    sent = other.transport.value()
    assert sent.count(b"\n") == 1
    done = json.loads(sent)["done"]
    assert done["now_ms"] == 7
    assert [each["row"] for each in done["first"]] == list(range(1000))
    assert (done["none"], done["inner"][0]["rows"][1]["row"]) == ([], 1)


async def _one(value: Long) -> AsyncIterator[Long]:
    yield value


def test_little_is_sent_to_another_process_that_does_not_read() -> None:
    transport = Full()
    request = Connection({"ask": Command(lambda: Long({}, {"rows": rows(10_000)}))})
    request.makeConnection(transport)
    request.lineReceived(b'["ask", []]')
    turns = 0
    while not transport.value().endswith(b"\n"):
        assert len(transport.value()) < 2 * PIECE_BYTES
        transport.clear()
        transport.producer.resumeProducing()
        turns += 1
    assert turns > 50


def test_an_answer_whose_reader_has_gone_is_given_up() -> None:
    other = Other(Long({}, {"rows": _waits()}))
    other.request.connectionLost(Failure(ConnectionError()))
    assert other.transport.value() == b'{"done": '


async def _waits() -> AsyncIterator[Any]:
    await Deferred()
    yield None


def test_an_answer_that_cannot_be_made_ends_the_connection(caplog: Any) -> None:
    other = Other(Long({}, {"rows": rows(1, fails=True)}))
    assert other.transport.disconnecting
    assert "a fault of ours" in caplog.text


@given(st.lists(st.integers(), max_size=20))
def test_order(items: list[int]) -> None:
    clock = Clock()
    slices = Slices(Rounds(clock), Turn())
    many = [*items, *range(RUN)]
    found: list[Any] = []
    Deferred.fromCoroutine(in_order(slices, many)).addCallback(lambda ordered: found.extend(ordered))
    clock.advance(0)
    assert found == sorted(many)


def test_nothing_of_a_string_steers_a_terminal() -> None:
    found: list[bytes] = []

    async def collect() -> None:
        async for piece in pieces(Long({"a": "\x9b\u202e\x7f\x1b"}, {})):
            found.append(piece)

    Deferred.fromCoroutine(collect())
    assert b"".join(found) == b'{"a": "\\u009b\\u202e\\u007f\\u001b"}'
