"""A connection over a transport in memory: order, reading ahead, backpressure, closing."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.testing import StringTransport

from kshim.callers import Refused
from kshim.callers.mistake import Mistake
from kshim.configs.endpoint import Endpoint
from kshim.network.connection import Connection
from kshim.network.intake import MODEST_BYTES
from kshim.network.replies import MAX_HELD_BYTES, MAX_IN_FLIGHT
from kshim.network.states import State
from kshim.turns.promise import Promise
from kshim.turns.rounds import ROUND_S, SHARE_S
from schemas.pieces import Pieces
from tests.network.frames import frame
from tests.network.one_connection import Reply, Server
from tests.network.transport import Transport
from tests.turns.reactor_turn import one_turn


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_reply_at_once(server: Server) -> None:
    server.answers = bytes.upper
    server.send(b"a")
    assert server.sent() == frame(b"A")


def test_replies_of_one_turn_leave_in_one_write(server: Server) -> None:
    writes: list[list[bytes]] = []
    server.transport.writeSequence = writes.append
    server.answers = bytes.upper
    server.send(b"a", b"b", b"c")
    assert [b"".join(write) for write in writes] == [frame(b"A") + frame(b"B") + frame(b"C")]


def test_promised_replies_of_one_moment_leave_in_one_write(server: Server) -> None:
    promises: list[Promise[bytes]] = [Promise() for _ in range(3)]
    waiting = iter(promises)
    server.connection.shared.answer = lambda *_: next(waiting).then(bytes.upper)
    writes: list[list[bytes]] = []
    server.transport.writeSequence = writes.append
    server.send(b"a", b"b", b"c")
    afterwards = {
        promise.answer(answer) for promise, answer in zip(reversed(promises), (b"c", b"b", b"a"), strict=True)
    }
    assert writes == []
    (send,) = afterwards
    assert send is not None
    send()
    assert [b"".join(write) for write in writes] == [frame(b"A") + frame(b"B") + frame(b"C")]


def test_a_promised_reply_that_cannot_be_made_closes(server: Server) -> None:
    promise: Promise[bytes] = Promise()

    def encode(_: object) -> bytes:
        raise Refused("no reply")

    server.connection.shared.answer = lambda *_: promise.then(encode)
    server.send(b"a")
    promise.answer_alone(b"a")
    assert server.transport.disconnecting
    assert server.sent() == b""


def test_a_connection_with_much_to_do_gives_way_to_others(server: Server) -> None:
    def compute(request: bytes) -> bytes:
        server.clock.rightNow += SHARE_S / 2
        return request

    server.answers = compute
    server.send(b"a", b"b", b"c", b"d", b"e")
    assert server.requests == [b"a", b"b"]
    assert server.sent() == frame(b"a") + frame(b"b")
    one_turn(server.clock)
    assert server.requests[2:] == [b"c", b"d"]
    one_turn(server.clock)
    assert server.requests[4:] == [b"e"]


def test_a_connection_that_stands_in_line_is_paused_when_more_arrives(server: Server) -> None:
    server.answers = bytes.upper
    rounds = server.connection.shared.rounds
    rounds.used_s = ROUND_S
    rounds.end()
    server.send(b"a")
    assert server.transport.reads
    server.send(b"b")
    assert (server.requests, server.transport.reads) == ([], False)
    server.clock.advance(0)
    assert (server.requests, server.transport.reads) == ([b"a", b"b"], True)


def test_a_connection_waits_for_its_round_while_others_have_used_the_last_one(server: Server) -> None:
    server.answers = bytes.upper
    rounds = server.connection.shared.rounds
    rounds.used_s = ROUND_S
    rounds.end()
    server.send(b"a")
    assert server.requests == []
    server.clock.advance(0)
    assert server.sent() == frame(b"A")


def test_replies_leave_in_the_order_of_the_requests(server: Server) -> None:
    server.send(b"a", b"b", b"c")
    server.parked[b"c"].answer_alone(b"C")
    server.parked[b"b"].answer_alone(b"B")
    assert server.sent() == b""
    server.parked[b"a"].answer_alone(b"A")
    assert server.sent() == frame(b"A") + frame(b"B") + frame(b"C")


def test_a_request_that_is_answered_alone(server: Server) -> None:
    """The requests behind it are begun when it is answered."""
    server.answers_alone = b"b"
    server.send(b"a", b"b", b"c", b"d")
    assert server.requests == [b"a", b"b"]
    server.parked[b"a"].answer_alone(b"A")
    assert server.requests == [b"a", b"b"]
    server.parked[b"b"].answer_alone(b"B")
    assert server.requests == [b"a", b"b", b"c", b"d"]
    assert server.sent() == frame(b"A") + frame(b"B")


def test_a_throttled_client_is_answered_at_once_and_then_muted(server: Server) -> None:
    server.answers, server.throttles = bytes.upper, {b"b": 1500}
    server.send(b"a", b"b", b"c")
    assert server.sent() == frame(b"A") + frame(b"B")
    assert not server.transport.reads
    assert server.connection.see().state is State.MUTED
    server.clock.advance(1.4)
    assert server.sent() == b""
    server.clock.advance(0.1)
    assert server.sent() == frame(b"C")
    assert server.transport.reads


def test_a_throttled_reply_that_comes_later_mutes_when_it_leaves(server: Server) -> None:
    server.throttles, server.answers_alone = {b"a": 500}, b"a"
    server.send(b"a", b"b")
    server.clock.advance(3)
    server.parked[b"a"].answer_alone(b"A")
    assert server.sent() == frame(b"A")
    server.clock.advance(0.4)
    assert server.requests == [b"a"]
    server.clock.advance(0.1)
    assert server.requests == [b"a", b"b"]


def test_the_longest_of_several_throttle_times_counts(server: Server) -> None:
    server.throttles = {b"a": 500, b"b": 2000, b"c": 100}
    server.send(b"a", b"b", b"c")
    for request in (b"a", b"b", b"c"):
        server.parked[request].answer_alone(request)
    server.send(b"d")
    server.clock.advance(1.9)
    assert server.requests == [b"a", b"b", b"c"]
    server.clock.advance(0.1)
    assert server.requests == [b"a", b"b", b"c", b"d"]


def test_a_muted_client_that_does_not_read_either(server: Server) -> None:
    server.answers, server.throttles = bytes.upper, {b"a": 1000}
    server.send(b"a", b"b")
    server.connection.pauseProducing()
    server.connection.resumeProducing()
    assert server.connection.see().state is State.MUTED
    server.connection.pauseProducing()
    server.clock.advance(1)
    assert server.requests == [b"a"]
    server.connection.resumeProducing()
    assert server.requests == [b"a", b"b"]


@pytest.mark.parametrize("end", ["lose", "drain", "close"])
def test_a_muted_connection_that_ends(server: Server, end: str) -> None:
    server.answers, server.throttles = bytes.upper, {b"a": 1000}
    server.send(b"a", b"b")
    if end == "lose":
        server.lose()
        assert not server.clock.getDelayedCalls()
    else:
        getattr(server.connection, end)()
        server.clock.advance(1)
    assert server.requests == [b"a"]


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_whatever_order_they_are_answered_in(order: list[int], silent: set[int]) -> None:
    server = Server()
    requests = [bytes([65 + i]) for i in range(6)]
    server.send(*requests)
    for i in order:
        server.parked[requests[i]].answer_alone(None if i in silent else requests[i])
    assert server.sent() == b"".join(frame(r) for i, r in enumerate(requests) if i not in silent)


def test_a_request_without_reply_keeps_its_place(server: Server) -> None:
    server.send(b"a", b"acks=0", b"c")
    server.parked[b"c"].answer_alone(b"C")
    server.parked[b"a"].answer_alone(b"A")
    assert server.sent() == frame(b"A")
    server.parked[b"acks=0"].answer_alone(None)
    assert server.sent() == frame(b"C")


def test_a_request_behind_a_parked_one_is_seen_and_may_complete_it(server: Server) -> None:

    def leave(request: bytes) -> Reply:
        server.parked[b"join"].answer_alone(b"aborted")
        return b"left"

    server.send(b"join")
    server.answers = leave
    server.send(b"leave")
    assert server.sent() == frame(b"aborted") + frame(b"left")


def test_a_parked_request_learns_that_another_is_behind_it(server: Server) -> None:
    server.send(b"fetch")
    assert not server.signals[0].fired
    server.signals[0].watch(lambda: server.parked[b"fetch"].answer_alone(b"empty"))
    server.send(b"metadata")
    assert server.sent() == frame(b"empty")
    server.parked[b"metadata"].answer_alone(b"M")
    assert server.sent() == frame(b"M")


def test_a_parked_request_learns_that_its_connection_is_lost(server: Server) -> None:
    server.send(b"fetch")
    server.signals[0].watch(lambda: server.parked[b"fetch"].answer_alone(b"empty"))
    server.lose()
    assert server.signals[0].fired
    assert server.sent() == b""
    assert server.gone == [server.connection]


def test_no_more_requests_are_in_flight_than_the_bound(server: Server) -> None:
    requests = [b"%03d" % i for i in range(MAX_IN_FLIGHT + 10)]
    server.send(*requests)
    assert server.requests == requests[:MAX_IN_FLIGHT]
    assert not server.transport.reads
    server.parked[requests[0]].answer_alone(b"first")
    assert server.sent() == frame(b"first")
    assert server.requests == requests[: MAX_IN_FLIGHT + 1]
    assert not server.transport.reads
    for request in requests[1:]:
        server.parked[request].answer_alone(request)
    assert server.requests == requests
    assert server.transport.reads
    assert server.sent() == b"".join(map(frame, requests[1:]))


def test_no_more_bytes_are_held_than_the_bound() -> None:
    """Requests count, and so do replies that wait behind a parked request."""
    server = Server(max_request_bytes=MAX_HELD_BYTES)
    server.send(b"join")
    big = bytes(MAX_HELD_BYTES // 4)
    server.answers = lambda request: big
    server.send(*[b"fetch"] * 20)
    assert len(server.requests) == 5
    assert not server.transport.reads
    server.parked[b"join"].answer_alone(b"joined")
    assert len(server.requests) == 21
    assert server.transport.reads


def test_a_client_that_does_not_read_is_not_read_from(server: Server) -> None:
    server.answers = bytes.upper
    server.connection.pauseProducing()
    assert not server.transport.reads
    server.connection.dataReceived(frame(b"a") * 1000)
    assert server.requests == []
    server.connection.resumeProducing()
    assert server.transport.reads
    assert server.sent() == frame(b"A") * 1000


def test_a_client_that_stops_reading_within_a_turn(server: Server) -> None:
    """The transport says so in the middle of received data; the rest waits."""

    def answers(request: bytes) -> Reply:
        if len(server.requests) == 3:
            server.connection.pauseProducing()
        return request

    server.answers = answers
    server.send(*[b"x"] * 10)
    assert len(server.requests) == 3
    assert server.sent() == frame(b"x") * 3


def test_replies_that_are_not_read_are_counted(server: Server) -> None:
    server.answers = lambda request: bytes(1000)
    server.send(b"a")
    assert server.unread.bytes == 0
    server.transport.writeSequence = lambda data: server.connection.pauseProducing()
    server.send(b"a")
    assert server.unread.bytes == 1000
    server.connection.resumeProducing()
    assert server.unread.bytes == 0
    server.send(b"a")
    server.lose()
    assert server.unread.bytes == 0


def test_what_a_client_has_read_of_its_replies_counts_no_more(server: Server) -> None:
    server.send(b"a")
    server.connection.pauseProducing()
    server.parked[b"a"].answer_alone(b"r" * 1000)
    server.transport.unsent_bytes = 1000
    assert (server.connection.unread_bytes(), server.unread.bytes) == (1000, 1000)
    server.transport.unsent_bytes = 300
    assert (server.connection.unread_bytes(), server.unread.bytes) == (300, 300)
    server.connection.resumeProducing()
    assert (server.connection.unread_bytes(), server.unread.bytes) == (0, 0)


def test_whoever_keeps_memory_without_reading_is_cut_off(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert server.unread.holders == {server.connection}
    server.send(b"a")
    server.connection.pauseProducing()
    server.parked[b"a"].answer_alone(b"r" * 1000)
    server.connection.abort_slow("reads too little")
    assert server.transport.aborted
    assert server.unread.bytes == 0
    assert caplog.messages == ["closed the connection of 10.0.0.7:51000: reads too little"]
    server.lose()
    assert server.connection.client.is_gone
    assert server.unread.holders == set()
    assert server.unread.bytes == 0


def test_requests_and_replies_in_flight_are_counted(server: Server) -> None:
    server.send(b"a", b"bb", b"ccc")
    assert server.unread.bytes == 6
    server.parked[b"bb"].answer_alone(bytes(1000))
    assert server.unread.bytes == 1004
    server.parked[b"a"].answer_alone(bytes(500))
    assert server.unread.bytes == 3
    server.lose()
    assert server.unread.bytes == 0


def test_large_replies_are_not_gathered_before_the_client_reads() -> None:
    """A chunk of small requests may ask for large replies; after the first reply the transport says stop."""
    server = Server()
    server.answers = lambda request: bytes(1_000_000)
    server.transport.writeSequence = lambda data: server.connection.pauseProducing()
    server.send(*[b"fetch"] * 50)
    assert len(server.requests) == 1


def test_memory_is_flat_for_a_client_that_never_reads(server: Server) -> None:
    """Only the current chunk is kept: the transport is not asked for more."""
    server.answers = lambda request: bytes(1000)
    transport = server.transport

    def write_sequence(data: list[bytes]) -> None:
        StringTransport.writeSequence(transport, data)
        if len(transport.value()) > 65536:
            server.connection.pauseProducing()

    transport.writeSequence = write_sequence
    rounds = 0
    while transport.reads and rounds < 1000:
        server.connection.dataReceived(frame(b"x") * 20)
        rounds += 1
    assert rounds < 10
    assert len(transport.value()) < 65536 + 20 * 1004


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ((-1).to_bytes(4, "big", signed=True), "a request of -1 bytes"),
        ((1025).to_bytes(4, "big"), "a request of 1025 bytes, above socket.request.max.bytes, which is 1024"),
    ],
)
def test_a_size_that_cannot_be_closes_with_one_line(
    server: Server, data: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = bytes.upper
    server.connection.dataReceived(frame(b"a") + data + frame(b"b"))
    assert server.sent() == frame(b"A")
    assert server.transport.disconnecting
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"closed the connection of 10.0.0.7:51000: {why}")
    ]


@pytest.mark.parametrize(
    ("data", "answer", "mistake"),
    [
        (bytes.fromhex("16030100c8010000c40303"), bytes.fromhex("15030300020100"), Mistake.TLS),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n", Mistake.HTTP),
        (b"*1\r\n$4\r\nPING\r\n", b"-ERR ", Mistake.REDIS),
        (b"ruok", b"", Mistake.ZOOKEEPER),
    ],
)
def test_who_speaks_another_protocol_is_answered_in_it(
    server: Server, data: bytes, answer: bytes, mistake: Mistake, caplog: pytest.LogCaptureFixture
) -> None:
    server.connection.dataReceived(data)
    sent = server.sent()
    assert sent.startswith(answer)
    assert bool(sent) == bool(answer)
    assert server.transport.disconnecting
    assert caplog.messages == [f"closed the connection of 10.0.0.7:51000: {mistake.value}"]
    assert caplog.records[0].levelno == logging.WARNING


def test_text_of_a_stranger_stands_in_the_log(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.connection.dataReceived(b"hello\r\nWARNING closed")
    (message,) = caplog.messages
    assert "it sends the text 'hello\\r\\nWARNING closed', but this port is" in message


def test_no_stranger_is_answered_behind_a_request(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.connection.dataReceived(frame(b"parked") + b"GET / HTTP/1.1\r\n\r\n")
    assert server.sent() == b""
    assert server.transport.disconnecting
    assert caplog.messages == [f"closed the connection of 10.0.0.7:51000: {Mistake.HTTP.value}"]


def test_a_mistake_is_logged_once_for_an_address(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(3):
        again = Connection(server.connection.shared, lambda _: None, server.gone.append)
        again.makeConnection(Transport())
        again.dataReceived(b"ruok")
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.WARNING, logging.DEBUG, logging.DEBUG]


def test_a_mistake_is_logged_once_for_each_name(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: bytes) -> Reply:
        raise Refused(f"client {request.decode()}", once="old", names=request.decode())

    server.answers = refuse
    for name in (b"x", b"y", b"x"):
        again = Connection(server.connection.shared, lambda _: None, server.gone.append)
        again.makeConnection(Transport())
        again.dataReceived(frame(name))
    assert caplog.messages == [f"closed the connection of client {name}" for name in "xy"]


def test_a_refused_request_closes_with_one_line(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: bytes) -> Reply:
        raise Refused(f"client x: {request.decode()}")

    server.send(b"parked")
    server.answers = refuse
    server.send(b"bad", b"worse")
    assert server.transport.disconnecting
    assert server.requests == [b"parked", b"bad"]
    assert [r.getMessage() for r in caplog.records] == ["closed the connection of client x: bad"]
    assert caplog.records[0].exc_info is None
    server.parked[b"parked"].answer_alone(b"too late")
    assert server.sent() == b""


def test_only_the_first_reason_to_close_is_told(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.send(b"a", b"b")
    server.parked[b"b"].answer_alone(Refused("client x: first"))
    server.parked[b"a"].answer_alone(Refused("client x: second"))
    assert caplog.messages == ["closed the connection of client x: first"]


def test_a_request_that_fails_after_its_client_is_gone(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.send(b"a")
    server.lose()
    server.parked[b"a"].answer_alone(Refused("client x: too late"))
    assert caplog.messages == []


@pytest.mark.parametrize("at_once", [True, False])
def test_a_fault_of_ours_is_logged_with_its_traceback(
    server: Server, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    def fail(request: bytes) -> Reply:
        raise Refused("client x: Heartbeat: failed", logging.ERROR) from KeyError("member")

    if at_once:
        server.answers = fail
        server.send(b"a")
    else:
        server.send(b"a")
        refused = Refused("client x: Heartbeat: failed", logging.ERROR)
        refused.__cause__ = KeyError("member")
        server.parked[b"a"].answer_alone(refused)
    assert server.transport.disconnecting
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "KeyError: 'member'" in caplog.text


@given(st.binary(max_size=200))
def test_whatever_is_received_is_answered_or_closes(data: bytes) -> None:
    server = Server()
    server.answers = bytes.upper
    for i in range(len(data)):
        if not server.transport.disconnecting:
            server.connection.dataReceived(data[i : i + 1])
    assert server.gone == []
    server.lose()


def test_an_idle_connection_is_closed() -> None:
    server = Server(max_idle_ms=600_000)
    server.answers = bytes.upper
    server.clock.advance(599)
    server.send(b"a")
    server.clock.advance(599.9)
    assert not server.transport.disconnecting
    server.clock.advance(0.1)
    assert server.transport.disconnecting
    server.lose()
    assert server.clock.getDelayedCalls() == []


def test_a_client_that_says_nothing_costs_one_timer() -> None:
    server = Server(max_idle_ms=600_000)
    assert len(server.clock.getDelayedCalls()) == 1
    for _ in range(100):
        server.connection.dataReceived(b"\0")
        server.clock.advance(1)
        if server.transport.disconnecting:
            break
        assert len(server.clock.getDelayedCalls()) == 1


def test_a_closed_connection_whose_client_never_reads_is_aborted() -> None:
    server = Server(max_idle_ms=1000)
    server.connection.pauseProducing()
    server.clock.advance(1)
    assert server.transport.disconnecting
    assert not server.transport.aborted
    server.clock.advance(1)
    assert server.transport.aborted


def test_idle_connections_are_kept_if_so_configured() -> None:
    server = Server(max_idle_ms=-1)
    assert server.clock.getDelayedCalls() == []


def test_a_connection_closed_while_its_client_does_not_read_has_no_producer(server: Server) -> None:
    """Twisted would go on asking a paused producer for more, and never close."""
    server.connection.pauseProducing()
    server.connection.close()
    assert server.transport.producer is None


def test_what_is_known_of_the_caller(server: Server) -> None:
    client = server.connection.client
    assert client.host == "/10.0.0.7"
    assert client.address == Endpoint("10.0.0.7", 51000)
    assert client.advertised == Endpoint("10.0.0.1", 9092)
    assert server.transport.options == {"no delay", "keep alive"}


def test_the_advertised_address_where_one_is_given() -> None:
    server = Server(advertised=Endpoint("kafka.example", 1))
    assert server.connection.client.advertised == Endpoint("kafka.example", 1)


def test_a_large_request_is_not_parked() -> None:
    server = Server(max_request_bytes=2 * MODEST_BYTES)
    server.send(bytes(MODEST_BYTES))
    assert not server.signals[-1].fired
    server = Server(max_request_bytes=2 * MODEST_BYTES)
    server.send(bytes(MODEST_BYTES + 1))
    assert server.signals[-1].fired


def test_a_reply_in_pieces(server: Server) -> None:
    server.answers = lambda request: Pieces([b"one", b"two"])
    server.send(b"a", b"b")
    assert server.sent() == frame(b"onetwo") * 2


def test_the_rest_of_a_large_request_is_received_in_place() -> None:
    server = Server(max_request_bytes=1_000_000)
    server.answers = lambda request: b"%d" % len(request)
    wire = frame(bytes(100_000))
    server.connection.dataReceived(wire[:1000])
    while (room := server.connection.room(int)) is not None:
        server.connection.filled(len(room))
    assert server.connection.shared.intake._cut_bytes > 60_000
    server.connection.dataReceived(bytes(100_004 - server.connection.shared.intake._cut_bytes))
    assert server.sent() == frame(b"100000")
    assert server.connection.shared.intake._cut_bytes == 0
