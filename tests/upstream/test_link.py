"""kshim's own connection to an upstream broker: order, versions, time-outs, and what breaks it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.authentication.client import Plain
from kshim.client.session import Session
from kshim.configs.endpoint import Endpoint
from kshim.configs.values import Secret
from kshim.upstream.link import LinkError, connect
from kshim.upstream.lost import Target, not_reached
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsResponse
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.produce import ProduceRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeResponse
from schemas.registry import encode_response
from tests.api.harness import result
from tests.network.frames import frame
from tests.upstream.link_end import ADDRESS, SERVED, Upstream


def error_of(answer: Deferred[Any]) -> str:
    with pytest.raises(LinkError) as caught:
        result(answer)
    return str(caught.value)


def test_several_requests_are_under_way_and_answered_in_their_order() -> None:
    upstream = Upstream().negotiate()
    groups, beat = upstream.link.ask(ListGroupsRequest()), upstream.link.ask(HeartbeatRequest(group_id="g"))
    (first, _), (second, asked) = upstream.requests()
    assert (first.api_key, second.api_key, asked.group_id) == (ApiKey.LIST_GROUPS, ApiKey.HEARTBEAT, "g")
    assert upstream.link.under_way == 2
    upstream.answer(first, ListGroupsResponse(throttle_time_ms=7))
    assert result(groups).throttle_time_ms == 7
    assert not beat.called
    upstream.answer(second, HeartbeatResponse(error_code=27))
    assert result(beat).error_code == 27
    upstream.clock.advance(3600)
    assert upstream.link.is_open


def test_a_response_may_come_in_any_pieces() -> None:
    upstream = Upstream().negotiate()
    answer = upstream.link.ask(HeartbeatRequest(group_id="g"))
    ((header, _),) = upstream.requests()
    response = HeartbeatResponse(error_code=27)
    reply = encode_response(header.api_key, header.api_version, header.correlation_id, response)
    for byte in frame(reply):
        upstream.link.dataReceived(bytes([byte]))
    assert result(answer) == response


def test_a_request_has_the_newest_version_that_both_know() -> None:
    upstream = Upstream().negotiate()
    upstream.link.ask(HeartbeatRequest(group_id="g")).addErrback(lambda _: None)
    upstream.link.ask(ListGroupsRequest()).addErrback(lambda _: None)
    upstream.link.ask(ListGroupsRequest(), newest=3).addErrback(lambda _: None)
    assert [header.api_version for header, _ in upstream.requests()] == [2, 5, 3]
    assert upstream.link.version(ApiKey.PRODUCE) == 9


def test_what_the_broker_does_not_serve_fails_alone() -> None:
    upstream = Upstream(SERVED[1:]).negotiate()
    assert error_of(upstream.link.ask(ProduceRequest())) == (
        "upstream broker 10.0.0.1:9092 serves no version of Produce that kshim knows"
    )
    assert upstream.link.is_open


def test_an_older_broker_is_asked_for_its_versions_again() -> None:
    upstream = Upstream()
    ((header, _),) = upstream.requests()
    unsupported = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=SERVED[-1:])
    upstream.answer(header, unsupported, version=0)
    ((again, asked),) = upstream.requests()
    assert (header.api_version, again.api_version, asked.client_software_name) == (5, 3, "kshim")
    upstream.answer(again, ApiVersionsResponse(api_keys=SERVED))
    assert result(upstream.negotiated) is upstream.link
    assert upstream.link.versions[ApiKey.PRODUCE] == range(3, 10)


def test_a_broker_that_never_tells_its_versions_is_asked_so_often() -> None:
    upstream = Upstream()
    unsupported = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=SERVED[-1:])
    for _ in range(2):
        ((header, _asked),) = upstream.requests()
        upstream.answer(header, unsupported, version=0)
    assert error_of(upstream.negotiated) == ("upstream broker 10.0.0.1:9092 does not list its APIs: error 35")


def test_a_produce_without_a_response_is_not_waited_for() -> None:
    upstream = Upstream().negotiate()
    assert result(upstream.link.ask(ProduceRequest(acks=0), has_response=False)) is None
    assert upstream.link.under_way == 0
    assert len(upstream.requests()) == 1


def test_a_request_that_is_not_answered_in_time_ends_all_that_are_under_way() -> None:
    upstream = Upstream().negotiate()
    late = upstream.link.ask(HeartbeatRequest(group_id="g"), timeout_s=2)
    behind = upstream.link.ask(ListGroupsRequest())
    upstream.clock.advance(2)
    why = "upstream broker 10.0.0.1:9092 has not answered Heartbeat within 2 s"
    assert error_of(late) == error_of(behind) == str(upstream.lost[0]) == why
    assert error_of(upstream.link.ask(ListGroupsRequest())) == why
    assert not upstream.link.is_open
    assert upstream.transport.disconnected
    assert not upstream.clock.getDelayedCalls()


def lose(reason: Exception) -> Callable[[Upstream], None]:
    return lambda upstream: upstream.link.connectionLost(Failure(reason))


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lose(ConnectionDone()), "upstream broker 10.0.0.1:9092 closed the connection"),
        (
            lose(ConnectionLost("reset")),
            "upstream broker 10.0.0.1:9092 closed the connection: "
            "Connection to the other side was lost in a non-clean fashion: reset",
        ),
        (lambda it: it.link.close(), "the connection to upstream broker 10.0.0.1:9092 was closed here"),
        (
            lambda it: it.send(b"\0\0\0\x63"),
            "upstream broker 10.0.0.1:9092 sent what is no response to a request: "
            "it has correlation id 99, where 2 was due",
        ),
        (
            lambda it: it.send(b"\0\0\0\2\0"),
            "upstream broker 10.0.0.1:9092 sent what is no response to a request: HeartbeatResponse v2",
        ),
        (
            lambda it: it.link.dataReceived(b"HTTP/1.1 400"),
            "upstream broker 10.0.0.1:9092 sent what is no response to a request: "
            "it begins with b'HTTP/1.1 400'",
        ),
        (
            lambda it: it.link.dataReceived(b"\xff\xff\xff\xff"),
            "upstream broker 10.0.0.1:9092 sent what is no response to a request: "
            r"it begins with b'\xff\xff\xff\xff'",
        ),
    ],
)
def test_a_link_that_breaks_says_why(end: Callable[[Upstream], None], why: str) -> None:
    upstream = Upstream().negotiate()
    answer = upstream.link.ask(HeartbeatRequest(group_id="g"))
    end(upstream)
    assert error_of(answer).startswith(why)
    assert len(upstream.lost) == 1
    late: list[LinkError] = []
    upstream.link.on_lost(late.append)
    assert late == upstream.lost


def test_nothing_is_answered_once_the_link_was_closed_by_an_answer() -> None:
    upstream = Upstream().negotiate()
    first, second = upstream.link.ask(ListGroupsRequest()), upstream.link.ask(ListGroupsRequest())
    first.addCallback(lambda _: upstream.link.close())
    headers = [header for header, _ in upstream.requests()]
    replies = [
        encode_response(h.api_key, h.api_version, h.correlation_id, ListGroupsResponse()) for h in headers
    ]
    upstream.link.dataReceived(b"".join(map(frame, replies)))
    assert error_of(second) == "the connection to upstream broker 10.0.0.1:9092 was closed here"


def login_answer(upstream: Upstream, lifetime_ms: int = 10_000) -> Any:
    """Answer the login's request that came, as the broker; return the request."""
    ((header, asked),) = upstream.requests()
    response: Any = SaslHandshakeResponse(mechanisms=("PLAIN",))
    if header.api_key == ApiKey.SASL_AUTHENTICATE:
        response = SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=lifetime_ms)
    upstream.answer(header, response)
    return asked


def with_session(upstream: Upstream) -> Upstream:
    """The login of its link is due."""
    session = upstream.link.session = Session("PLAIN", lambda: Plain("alice", Secret("wonderland")))
    session.is_due = lambda now_s: session.correlation_id == 0
    return upstream


def test_a_login_is_renewed_between_two_requests_and_what_follows_waits_for_it() -> None:
    upstream = Upstream().negotiate()
    before = upstream.link.ask(ListGroupsRequest())
    ((first, _),) = upstream.requests()
    with_session(upstream)
    beats = [upstream.link.ask(HeartbeatRequest(group_id=each)) for each in "ab"]
    ((handshake, asked),) = upstream.requests()
    assert (handshake.api_key, asked.mechanism) == (ApiKey.SASL_HANDSHAKE, "PLAIN")
    upstream.answer(first, ListGroupsResponse(throttle_time_ms=7))
    assert result(before).throttle_time_ms == 7
    upstream.answer(handshake, SaslHandshakeResponse(mechanisms=("PLAIN",)))
    assert login_answer(upstream).auth_bytes == b"\0alice\0wonderland"
    (one, asked_one), (two, _) = upstream.requests()
    assert asked_one.group_id == "a"
    upstream.answer(one, HeartbeatResponse(error_code=1))
    upstream.answer(two, HeartbeatResponse(error_code=2))
    assert [result(beat).error_code for beat in beats] == [1, 2]
    assert upstream.link.is_open
    upstream.clock.advance(3600)
    assert upstream.link.is_open


def test_a_link_ends_when_its_login_is_not_renewed() -> None:
    upstream = with_session(Upstream().negotiate())
    beat = upstream.link.ask(HeartbeatRequest(group_id="g"))
    ((handshake, _),) = upstream.requests()
    refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("A",))
    upstream.answer(handshake, refused)
    assert error_of(beat) == (
        "upstream broker 10.0.0.1:9092 does not take PLAIN (sasl.mechanism); it takes A"
    )
    assert upstream.lost[0].is_refused
    assert not upstream.clock.getDelayedCalls()


def test_a_broker_that_speaks_tls_says_so() -> None:
    upstream = Upstream()
    upstream.link.dataReceived(bytes.fromhex("15 0303 0002 0250"))
    assert error_of(upstream.negotiated) == (
        "upstream broker 10.0.0.1:9092 speaks TLS at this port (upstream.security.protocol)"
    )
    assert upstream.lost[0].is_refused


def test_a_broker_that_never_answers_more_than_its_versions_may_want_a_login() -> None:
    upstream = Upstream().negotiate()
    answer = upstream.link.ask(ListGroupsRequest())
    upstream.link.connectionLost(Failure(ConnectionDone()))
    assert error_of(answer) == (
        "upstream broker 10.0.0.1:9092 closed the connection without an answer: is "
        "upstream.security.protocol right?"
    )
    assert not upstream.lost[0].is_refused


def test_a_broker_that_is_not_there_is_named() -> None:
    class NotThere:
        reactor = Clock()

        def connect(self, target: Target, address: Endpoint, timeout_s: float) -> None:
            target.lose(not_reached(ConnectionRefusedError(osError=errno.ECONNREFUSED)))

    linked = connect(NotThere(), ADDRESS, timeout_s=3)
    assert error_of(linked) == "upstream broker 10.0.0.1:9092 cannot be reached: Connection refused"


def test_a_frame_goes_as_it_is_and_its_answer_has_its_correlation_id() -> None:
    upstream = Upstream().negotiate()
    first = upstream.link.ask(HeartbeatRequest(group_id="g"))
    head = ApiKey.LIST_GROUPS.to_bytes(2) + b"\0\1"
    answer = upstream.link.ask_frame(head + (77).to_bytes(4) + b"\0\1c", timeout_s=5)
    (beat, _), (listed, _) = upstream.requests()
    assert (listed.api_key, listed.api_version, listed.client_id) == (ApiKey.LIST_GROUPS, 1, "c")
    assert listed.correlation_id == beat.correlation_id + 1
    upstream.answer(beat, HeartbeatResponse())
    assert result(first).error_code == 0
    upstream.answer(listed, ListGroupsResponse(throttle_time_ms=5))
    expected = encode_response(ApiKey.LIST_GROUPS, 1, 77, ListGroupsResponse(throttle_time_ms=5))
    assert result(answer) == bytes(expected)
    late = upstream.link.ask_frame(head + (78).to_bytes(4) + b"\0\1c", timeout_s=5)
    upstream.clock.advance(5)
    assert "has not answered ListGroups within 5 s" in error_of(late)
    assert error_of(upstream.link.ask_frame(head + bytes(4))) != ""
