"""A client and a broker with kshim between them: order, back-pressure both ways, large responses, endings."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from kshim.authentication.client import Plain
from kshim.client.session import Session
from kshim.configs.values import Secret
from kshim.network.replies import MAX_IN_FLIGHT
from kshim.upstream.lost import Lost
from kshim.upstream.passage import CLOSE_S
from kshim.upstream.responses import LARGE_BYTES
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.sasl_authenticate import SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeResponse
from schemas.registry import decode_request, encode_response
from tests.network.frames import frame
from tests.upstream.relay_world import World

LARGE = b"r" * (LARGE_BYTES + 1000)


def test_requests_pass_in_one_write_and_responses_come_back_in_one() -> None:
    world = World()
    world.ask(b"a", b"b", b"z")
    assert world.broker.taken() == frame(b"a") + frame(b"b") + frame(b"z")
    world.respond(b"A", b"B")
    assert world.client.taken() == frame(b"A") + frame(b"B")


def test_the_connection_to_the_broker_is_made_when_it_is_needed() -> None:
    world = World(is_connected=False)
    world.ask(b"k")
    assert not world.passages
    world.ask(b"a", b"b")
    world.connect()
    assert world.broker.taken() == frame(b"a") + frame(b"b")
    assert {"no delay", "keep alive"} <= world.broker.options


@given(st.permutations(["k1", "k2", "broker", "broker", "broker"]))
def test_replies_leave_in_the_order_of_the_requests(arrivals: list[str]) -> None:
    world = World()
    world.ask(b"a", b"k1", b"big", b"k2", b"c")
    responses = [b"A", LARGE, b"C"]
    for arrival in arrivals:
        if arrival == "broker":
            world.respond(responses.pop(0))
        else:
            world.ours[arrival.encode()].answer_alone(arrival.encode())
    assert world.client.taken() == b"".join(map(frame, (b"A", b"k1", LARGE, b"k2", b"C")))
    assert world.unread.bytes == 0


def test_a_large_response_goes_on_while_its_rest_is_on_its_way() -> None:
    world = World()
    world.ask(b"big", b"b")
    data = frame(LARGE) + frame(b"B")
    world.passage.dataReceived(data[:100])
    assert world.client.taken() == data[:100]
    world.passage.dataReceived(data[100:200])
    assert world.client.taken() == data[100:200]
    world.passage.dataReceived(data[200:])
    assert world.client.taken() == data[200:]


def test_a_large_response_waits_for_its_turn_and_nothing_more_is_received() -> None:
    world = World()
    world.ask(b"k", b"big", b"b")
    world.passage.dataReceived(frame(LARGE)[:100])
    assert not world.broker.reads
    assert world.client.taken() == b""
    world.ours[b"k"].answer_alone(b"K")
    assert world.client.taken() == frame(b"K") + frame(LARGE)[:100]
    assert world.broker.reads


def test_a_response_that_is_read_here_is_whole() -> None:
    world = World()
    world.ask(b"k", b"w")
    data = frame(LARGE)
    for at in range(0, len(data), 9000):
        world.passage.dataReceived(data[at : at + 9000])
    assert world.broker.reads
    world.ours[b"k"].answer_alone(b"K")
    assert world.client.taken() == frame(b"K") + frame(LARGE)


def test_a_client_that_does_not_read_stops_its_broker() -> None:
    world = World()
    world.ask(b"big", b"b")
    world.client.is_read = False
    world.passage.dataReceived(frame(LARGE)[:5000])
    assert not world.broker.reads
    assert not world.client.reads
    assert world.unread.bytes >= 5000
    held = len(world.client.value())
    world.passage.dataReceived(frame(LARGE)[5000:] + frame(b"B"))
    assert len(world.client.value()) == held
    world.client.read()
    assert world.broker.reads
    assert world.client.reads
    assert world.client.taken() == frame(LARGE) + frame(b"B")
    assert world.unread.bytes == 0


def test_a_broker_goes_on_though_nothing_was_left_when_its_client_had_read() -> None:
    world = World()
    world.ask(b"big")
    world.client.is_read = False
    world.passage.dataReceived(frame(LARGE)[:5000])
    assert not world.broker.reads
    world.client.read()
    assert world.broker.reads


def test_a_client_that_reads_again_does_not_resume_its_broker_before_a_reply_that_must_leave_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.ask(b"k", b"big")
    world.passage.dataReceived(frame(LARGE)[:100])
    resumed: list[bool] = []
    monkeypatch.setattr(world.broker, "resumeProducing", lambda: resumed.append(True))
    world.near.pauseProducing()
    world.near.resumeProducing()
    assert not resumed
    world.ours[b"k"].answer_alone(b"K")
    assert resumed


def test_a_client_that_does_not_read_before_its_broker_is_reached_stops_it() -> None:
    world = World(is_connected=False)
    world.client.is_read = False
    world.ask(b"big", b"k")
    world.ours[b"k"].answer_alone(b"K")
    world.near.pauseProducing()
    world.connect()
    world.respond(LARGE)
    assert not world.broker.reads
    assert world.client.taken() == b""
    world.client.read()
    assert world.broker.reads
    assert world.client.taken() == frame(LARGE) + frame(b"K")


def test_a_client_that_reads_again_before_its_broker_is_reached_stops_nothing() -> None:
    world = World(is_connected=False)
    world.ask(b"a")
    world.near.pauseProducing()
    world.near.resumeProducing()
    world.connect()
    assert world.broker.reads
    world.respond(b"A")
    assert world.client.taken() == frame(b"A")


def test_a_broker_that_does_not_read_stops_its_client() -> None:
    world = World()
    world.broker.is_read = False
    world.ask(b"a")
    assert not world.client.reads
    world.ask(b"b", b"k")
    assert world.broker.taken() == frame(b"a")
    assert not world.ours
    world.broker.read()
    assert world.client.reads
    assert world.broker.taken() == frame(b"b")
    assert b"k" in world.ours


def test_requests_under_way_are_bounded() -> None:
    world = World()
    for _ in range(MAX_IN_FLIGHT + 5):
        world.ask(b"a")
    assert not world.client.reads
    assert world.broker.taken() == frame(b"a") * MAX_IN_FLIGHT
    world.respond(*[b"A"] * MAX_IN_FLIGHT)
    assert world.client.reads
    assert world.broker.taken() == frame(b"a") * 5


def test_the_client_goes_with_its_broker(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.ask(b"a", b"b")
    world.respond(b"A")
    world.passage.connectionLost(Failure(ConnectionDone()))
    assert world.client.taken() == frame(b"A")
    assert world.client.disconnecting
    assert [record.getMessage() for record in caplog.records] == [
        "closed the connection of 10.0.0.7:51000: upstream broker b:1 closed the connection"
    ]


def test_a_broker_that_cannot_be_reached_closes_the_client(caplog: pytest.LogCaptureFixture) -> None:
    world = World(is_connected=False)
    world.ask(b"a")
    world.passage.lose(Lost("cannot be reached: Connection refused"))
    assert world.client.disconnecting
    assert "upstream broker b:1 cannot be reached: Connection refused" in caplog.text


@pytest.mark.parametrize("data", [frame(b"unasked"), b"\xff\xff\xff\xff", frame(LARGE)])
def test_what_is_no_response_closes_both(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.passage.dataReceived(data)
    assert world.client.disconnecting
    assert world.broker.aborted
    assert "upstream broker b:1 sent what is no response to a request" in caplog.text


def test_a_broker_gets_what_its_client_sent_before_it_left() -> None:
    world = World(is_connected=False)
    world.ask(b"z")
    world.near.connectionLost(Failure(ConnectionDone()))
    world.connect()
    assert world.broker.taken() == frame(b"z")
    assert world.broker.disconnecting


def test_a_broker_that_never_reads_it_is_given_up() -> None:
    world = World()
    world.near.connectionLost(Failure(ConnectionDone()))
    assert world.broker.disconnecting
    assert not world.broker.aborted
    world.clock.advance(CLOSE_S)
    assert world.broker.aborted


def test_nothing_is_left_of_a_client_that_goes(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.ask(b"k", b"big")
    world.passage.dataReceived(frame(LARGE)[:100])
    world.near.connectionLost(Failure(ConnectionDone()))
    world.passage.dataReceived(frame(LARGE)[100:])
    world.passage.connectionLost(Failure(ConnectionDone()))
    assert world.unread.bytes == 0
    assert not world.clock.getDelayedCalls()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def login_response(request: bytes, lifetime_ms: int = 10_000) -> bytes:
    """A broker's answer to a request of a login."""
    header, _ = decode_request(request[4:])
    response: Any = SaslHandshakeResponse(mechanisms=("PLAIN",))
    if header.api_key == ApiKey.SASL_AUTHENTICATE:
        response = SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=lifetime_ms)
    return bytes(encode_response(header.api_key, header.api_version, header.correlation_id, response))


def world_with_session() -> World:
    """The login of the passage counts for ten seconds."""
    world = World(is_connected=False)
    world.ask(b"z")
    session = world.passage.session = Session("PLAIN", lambda: Plain("alice", Secret("wonderland")))
    request: bytes | None = session.begin()
    while request is not None:
        request = session.answer(login_response(bytes(4) + request), world.clock.seconds())
    world.connect()
    assert world.broker.taken() == frame(b"z")
    return world


def test_a_login_is_renewed_between_two_requests_and_what_follows_waits_for_it() -> None:
    world = world_with_session()
    world.ask(b"a")
    assert world.broker.taken() == frame(b"a")
    world.clock.advance(9)
    world.ask(b"b", b"c", b"z")
    handshake = world.broker.taken()
    assert decode_request(handshake[4:])[0].api_key == ApiKey.SASL_HANDSHAKE
    assert not world.client.reads
    world.respond(b"A")
    assert world.client.taken() == frame(b"A")
    world.respond(login_response(handshake))
    authenticate = world.broker.taken()
    assert decode_request(authenticate[4:])[1].auth_bytes == b"\0alice\0wonderland"
    world.respond(login_response(authenticate))
    assert world.broker.taken() == frame(b"b") + frame(b"c") + frame(b"z")
    assert world.client.reads
    world.respond(b"B", b"C")
    assert world.client.taken() == frame(b"B") + frame(b"C")
    world.ask(b"d")
    assert world.broker.taken() == frame(b"d")


def test_a_client_goes_when_the_login_is_not_renewed(caplog: pytest.LogCaptureFixture) -> None:
    world = world_with_session()
    world.clock.advance(9)
    world.ask(b"a")
    world.respond(login_response(world.broker.taken()))
    header, _ = decode_request(world.broker.taken()[4:])
    refused = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="No.", auth_bytes=b""
    )
    world.respond(encode_response(header.api_key, header.api_version, header.correlation_id, refused))
    assert world.client.disconnecting
    assert world.broker.aborted
    assert "upstream broker b:1 refuses the login by PLAIN: No." in caplog.text
    assert "wonderland" not in caplog.text


def test_a_broker_that_does_not_read_when_its_login_is_renewed_still_stops_its_client() -> None:
    world = world_with_session()
    world.clock.advance(9)
    world.broker.is_read = False
    world.ask(b"a")
    handshake = world.broker.taken()
    world.broker.read()
    assert not world.client.reads
    world.broker.is_read = False
    world.respond(login_response(handshake))
    world.respond(login_response(world.broker.taken()))
    assert world.broker.taken() == frame(b"a")
    assert not world.client.reads
    world.broker.read()
    assert world.client.reads


def test_a_client_is_not_read_from_after_a_login_if_the_broker_has_not_read_all_yet() -> None:
    world = world_with_session()
    world.clock.advance(9)
    world.broker.is_read = False
    world.ask(b"a")
    world.broker.is_read = True  # there is room for more, but the transport has not resumed its producer
    world.respond(login_response(world.broker.taken()))
    world.respond(login_response(world.broker.taken()))
    assert world.broker.taken() == frame(b"a")
    assert not world.client.reads
    world.broker.read()
    assert world.client.reads


def test_a_client_that_goes_while_the_login_is_renewed_has_nothing_more_sent() -> None:
    world = world_with_session()
    world.clock.advance(9)
    world.ask(b"a")
    handshake = world.broker.taken()
    world.near.connectionLost(Failure(ConnectionDone()))
    world.respond(login_response(handshake))
    world.passage.flush()
    assert world.broker.taken() == b""
    assert world.broker.disconnecting
    world.clock.advance(CLOSE_S)
    assert world.broker.aborted


@pytest.mark.parametrize("ends", ["near.close", "near.connectionLost"])
def test_the_relay_of_a_client_that_has_gone_is_forgotten(ends: str) -> None:
    world = World()
    assert list(world.relays.by_client) == [world.near.client]
    attrgetter(ends)(world)()
    assert not world.relays.by_client
