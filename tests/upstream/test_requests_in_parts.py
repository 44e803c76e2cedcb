"""A large Produce goes through kshim in parts: its order, back-pressure both ways, and how it may end."""

from __future__ import annotations

import pytest
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from kshim.network.replies import MAX_IN_FLIGHT
from kshim.upstream.lost import Lost
from kshim.upstream.passage import EARLY_BYTES
from tests.network.frames import frame
from tests.upstream.produced import produce
from tests.upstream.relay_world import MOST_BYTES, World

PRODUCE = produce(100_000)


def test_a_large_produce_goes_on_while_its_rest_is_on_its_way() -> None:
    world = World()
    data = frame(PRODUCE)
    for at in range(0, len(data), 7000):
        world.near.dataReceived(data[at : at + 7000])
        assert world.broker.taken() == data[at : at + 7000]
        assert world.unread.bytes < 7000
    world.ask(b"k")
    world.respond(b"A")
    world.ours[b"k"].answer_alone(b"K")
    assert world.client.taken() == frame(b"A") + frame(b"K")
    assert world.unread.bytes == 0


def test_requests_around_a_large_produce_keep_their_order() -> None:
    world = World()
    data = frame(b"a") + frame(PRODUCE) + frame(b"b") + frame(PRODUCE) + frame(b"z")
    for at in range(0, len(data), 9000):
        world.near.dataReceived(data[at : at + 9000])
    assert world.broker.taken() == data
    world.respond(b"A", b"P", b"B", b"Q")
    assert world.client.taken() == b"".join(map(frame, (b"A", b"P", b"B", b"Q")))


def test_a_produce_that_is_looked_into_is_whole() -> None:
    world = World()
    world.relays.need_whole = True
    world.near.dataReceived(frame(PRODUCE)[:50_000])
    assert world.broker.taken() == b""
    world.near.dataReceived(frame(PRODUCE)[50_000:])
    assert world.broker.taken() == frame(PRODUCE)


@pytest.mark.parametrize("topics", [("own",), ("to", "own")])
def test_a_produce_that_may_write_to_the_own_topic_is_whole(topics: tuple[str, ...]) -> None:
    world = World()
    data = frame(produce(100_000, topics=topics))
    for at in range(0, 70_000, 7000):
        world.near.dataReceived(data[at : at + 7000])
        assert world.broker.taken() == b""
    world.near.dataReceived(data[70_000:])
    assert world.broker.taken() == data


def test_a_broker_that_does_not_read_stops_a_client_in_the_middle_of_a_request() -> None:
    world = World()
    world.broker.is_read = False
    data = frame(PRODUCE)
    world.near.dataReceived(data[:20_000])
    assert not world.client.reads
    assert world.broker.taken() == data[:20_000]
    world.near.dataReceived(data[20_000:30_000])  # was received already
    assert world.broker.taken() == b""
    world.broker.read()
    assert world.client.reads
    world.near.dataReceived(data[30_000:])
    assert world.broker.taken() == data[20_000:]


def test_replies_before_a_request_in_parts_leave_while_it_comes() -> None:
    world = World()
    world.ask(b"k")
    world.near.dataReceived(frame(PRODUCE)[:20_000])
    world.ours[b"k"].answer_alone(b"K")
    assert world.client.taken() == frame(b"K")
    world.near.dataReceived(frame(PRODUCE)[20_000:])
    assert world.broker.taken() == frame(PRODUCE)


def test_a_request_in_parts_is_one_of_those_under_way() -> None:
    """The last that there is room for stops the client until a response comes."""
    world = World()
    world.ask(*[b"a"] * (MAX_IN_FLIGHT - 1))
    world.broker.taken()
    world.near.dataReceived(frame(PRODUCE)[:20_000])
    assert not world.client.reads
    world.respond(b"A")
    assert world.client.reads
    world.near.dataReceived(frame(PRODUCE)[20_000:])
    assert world.broker.taken() == frame(PRODUCE)


def test_a_client_that_goes_in_the_middle_of_a_request_takes_its_broker_with_it() -> None:
    world = World()
    world.ask(b"z")
    world.near.dataReceived(frame(PRODUCE)[:20_000])
    world.near.connectionLost(Failure(ConnectionDone()))
    assert world.broker.taken() == frame(b"z") + frame(PRODUCE)[:20_000]
    assert world.broker.disconnecting
    assert world.unread.bytes == 0


def test_a_broker_that_goes_in_the_middle_of_a_request_takes_its_client_with_it() -> None:
    """Also one to which a request is larger than it allows."""
    world = World()
    world.near.dataReceived(frame(PRODUCE)[:20_000])
    world.passage.connectionLost(Failure(ConnectionDone()))
    assert world.client.disconnecting
    world.near.dataReceived(frame(PRODUCE)[20_000:])
    assert world.broker.taken() == frame(PRODUCE)[:20_000]
    assert world.unread.bytes == 0


def test_a_request_larger_than_kshim_allows_is_refused_before_any_of_it_has_gone_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.near.dataReceived(frame(b"a") + (MOST_BYTES + 1).to_bytes(4) + PRODUCE[:20_000])
    assert world.broker.taken() == frame(b"a")
    assert world.client.disconnecting
    assert f"a request of {MOST_BYTES + 1} bytes, above socket.request.max.bytes" in caplog.text


@pytest.mark.parametrize("request_bytes", [100_000, 3], ids=["in parts", "without answers"])
def test_what_waits_for_a_connection_is_bounded(request_bytes: int) -> None:
    world = World(is_connected=False)
    data = frame(PRODUCE) if request_bytes > 3 else frame(b"zzz") * 20_000
    sent = 0
    while world.client.reads:
        world.near.dataReceived(data[sent : sent + 1000])
        sent += 1000
    assert EARLY_BYTES <= sent <= EARLY_BYTES + 2000
    world.connect()
    assert world.client.reads
    world.near.dataReceived(data[sent:])
    assert world.broker.taken() == data


def test_a_broker_that_reads_nothing_once_it_is_reached_still_stops_its_client() -> None:
    world = World(is_connected=False)
    world.near.dataReceived(frame(PRODUCE)[:EARLY_BYTES])
    assert not world.client.reads
    world.broker.is_read = False
    world.connect()
    assert not world.client.reads
    world.broker.read()
    assert world.client.reads


def test_a_client_that_goes_before_its_broker_is_reached_has_its_part_sent() -> None:
    world = World(is_connected=False)
    world.near.dataReceived(frame(PRODUCE)[:EARLY_BYTES])
    world.near.connectionLost(Failure(ConnectionDone()))
    world.connect()
    assert world.broker.taken() == frame(PRODUCE)[:EARLY_BYTES]
    assert world.broker.disconnecting


def test_a_broker_that_cannot_be_reached_closes_a_client_in_the_middle_of_a_request() -> None:
    world = World(is_connected=False)
    world.near.dataReceived(frame(PRODUCE)[:EARLY_BYTES])
    world.passage.lose(Lost("cannot be reached: Connection refused"))
    assert world.client.disconnecting
    assert world.unread.bytes == 0
