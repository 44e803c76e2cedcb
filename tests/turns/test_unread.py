"""Large answers wait for room, and clients that keep it without reading are closed."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.callers import Client
from kshim.callers.context import Contact
from kshim.configs.endpoint import Endpoint
from kshim.turns.rounds import ROUND_S, Rounds
from kshim.turns.unread import (
    ELEMENT_BYTES,
    LEAST_ANSWER_BYTES,
    LOOK_S,
    MOST_ANSWER_BYTES,
    MOST_BYTES,
    SLOW_S,
    NoRoom,
    Unread,
)
from tests.turns.reactor_turn import one_turn

LARGE = 10 * LEAST_ANSWER_BYTES


class Holder:
    """A connection that has answers which are not read."""

    def __init__(self, unread: Unread, unread_bytes: int) -> None:
        self._unread = unread
        self._bytes = unread_bytes
        self._read_bytes = 0
        self.closed = ""
        unread.holders.add(self)
        unread.not_read(unread_bytes)

    def read(self, read_bytes: int) -> None:
        self._bytes -= read_bytes
        self._read_bytes += read_bytes
        self._unread.bytes -= read_bytes

    def unread_bytes(self) -> int:
        return self._bytes

    def read_bytes(self) -> int:
        return self._read_bytes

    def abort_slow(self, why: str) -> None:
        self.closed = why
        self._unread.holders.discard(self)
        self._unread.bytes -= self._bytes
        self._bytes = 0


def new_client(host: str) -> Client:
    return Client(f"/{host}", Endpoint(host, 51000), Endpoint("10.0.0.1", 9092))


class Memory:
    """The memory of a server."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.rounds = Rounds(self.clock)
        self.unread = Unread(self.clock, self.rounds)
        self.client = new_client("10.0.0.7")

    def ask(self, size: int = LARGE, elements: int = 0, host: str = "10.0.0.7") -> list[object]:
        """The fate of an answer: None as soon as it has room, or the reason why it gets none."""
        found: list[object] = []
        client = self.client if host == self.client.address.host else new_client(host)
        room = Deferred.fromCoroutine(self.unread.room(client, size, elements))
        room.addCallbacks(found.append, lambda failure: found.append(failure.type))
        return found

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK_S)):
            self.clock.advance(LOOK_S)


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_what_fetches_take_counts_until_all_that_stand_in_line_had_their_turn(memory: Memory) -> None:
    def take_turn() -> None:
        left.append(memory.unread.answer_bytes())
        memory.clock.rightNow += 2 * ROUND_S

    left: list[int] = []
    memory.unread.taken(MOST_ANSWER_BYTES)
    for _ in range(3):
        memory.rounds.stand_in_line(take_turn, is_fresh=True)
    for _ in range(4):
        one_turn(memory.clock)
    assert left == [LEAST_ANSWER_BYTES] * 3
    memory.clock.advance(0)
    assert memory.unread.answer_bytes() == MOST_ANSWER_BYTES


def test_an_answer_that_fits_has_room_at_once(memory: Memory) -> None:
    assert memory.ask() == [None]
    assert memory.unread.bytes == LARGE
    memory.unread.give_back(LARGE)
    assert memory.unread.bytes == 0
    assert memory.clock.getDelayedCalls() == []


def test_a_small_answer_never_waits(memory: Memory) -> None:
    Holder(memory.unread, MOST_BYTES)
    assert memory.ask(LEAST_ANSWER_BYTES) == [None]


def test_a_large_answer_waits_until_others_have_read(memory: Memory) -> None:
    holder = Holder(memory.unread, MOST_BYTES)
    waits = memory.ask()
    memory.advance(SLOW_S / 2)
    assert waits == []
    holder.read(LARGE)
    memory.advance(LOOK_S)
    assert waits == [None]
    assert memory.unread.bytes == MOST_BYTES
    assert not holder.closed


def test_addresses_take_turns_and_their_small_answers_go_first(memory: Memory) -> None:
    holder = Holder(memory.unread, MOST_BYTES)
    large, small = memory.ask(LARGE), memory.ask(LARGE - 1)
    other = memory.ask(2 * LARGE, host="10.0.0.8")
    for read_bytes, expected in ((LARGE - 1, [1, 0, 0]), (2 * LARGE, [1, 1, 0]), (LARGE, [1, 1, 1])):
        holder.read(read_bytes)
        memory.advance(LOOK_S)
        assert list(map(len, (small, other, large))) == expected


def test_of_those_that_do_not_read_whoever_has_most_is_closed(memory: Memory) -> None:
    few, most = Holder(memory.unread, MOST_BYTES // 4), Holder(memory.unread, MOST_BYTES // 2)
    reads = Holder(memory.unread, MOST_BYTES // 4)
    waits = memory.ask()
    memory.advance(SLOW_S / 2)
    reads.read(MOST_BYTES // 40)
    memory.unread.bytes += MOST_BYTES // 40  # others have it now
    memory.advance(SLOW_S)
    assert waits == [None]
    assert (
        most.closed
        == f"hardly reads the {MOST_BYTES // 2} bytes of its answers, while others wait for their memory"
    )
    assert not few.closed
    assert not reads.closed
    memory.unread.give_back(LARGE)
    memory.advance(LOOK_S)
    assert memory.clock.getDelayedCalls() == []


def test_whoever_reads_drop_by_drop_is_closed(memory: Memory) -> None:
    holder = Holder(memory.unread, MOST_BYTES)
    memory.ask()
    for _ in range(4):
        holder.read(LEAST_ANSWER_BYTES)
        memory.unread.bytes += LEAST_ANSWER_BYTES
        memory.advance(SLOW_S / 3)
    assert holder.closed


def test_small_answers_that_nobody_reads_close_their_clients_too(memory: Memory) -> None:
    holders = [Holder(memory.unread, 2 * LEAST_ANSWER_BYTES) for _ in range(MOST_BYTES // LEAST_ANSWER_BYTES)]
    memory.advance(SLOW_S + 2 * LOOK_S)
    assert memory.unread.bytes <= MOST_BYTES
    assert sum(1 for holder in holders if holder.closed) == len(holders) // 2
    assert memory.clock.getDelayedCalls() == []


def test_requests_alone_hold_up_no_answer_for_ever(memory: Memory) -> None:
    memory.unread.bytes += MOST_BYTES
    first, second = memory.ask(), memory.ask()
    memory.advance(LOOK_S)
    assert (first, second) == ([None], [])
    memory.unread.give_back(LARGE)
    memory.advance(LOOK_S)
    assert second == [None]


def test_an_answer_whose_client_goes_waits_no_longer(memory: Memory) -> None:
    Holder(memory.unread, MOST_BYTES)
    waits = memory.ask()
    memory.client.ended(Contact.CLOSED)
    memory.advance(LOOK_S)
    assert waits == [NoRoom]


def test_what_waits_is_bounded_too(memory: Memory) -> None:
    Holder(memory.unread, MOST_BYTES)
    most = MOST_BYTES // ELEMENT_BYTES
    light, heavy, other = (
        memory.ask(elements=1),
        memory.ask(elements=most // 2 + 1),
        memory.ask(elements=most // 2),
    )
    assert (light, heavy, other) == ([], [NoRoom], [])
