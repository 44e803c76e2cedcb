"""Places for connections, and memory for requests on their way."""

from __future__ import annotations

import logging

import pytest
from twisted.internet.task import Clock

from kshim.configs.reading import new_config
from kshim.network.connections import LOOK_S
from kshim.network.intake import LOOK_S as INTAKE_LOOK_S
from kshim.network.intake import PATIENCE_S, Intake
from kshim.network.states import Wait
from kshim.quotas.connections import UNLIMITED
from kshim.turns.rounds import Rounds
from kshim.turns.unread import MOST_BYTES, Unread
from tests.network.frames import frame
from tests.network.listening import HOST, MEMORY, Listening, connected

# ---- places


def test_an_address_may_have_so_many_connections(caplog: pytest.LogCaptureFixture) -> None:
    listening = Listening(max_connections_per_ip="2")
    first, _ = connected(listening), connected(listening)
    with caplog.at_level(logging.WARNING):
        assert listening.connect() is None
    assert caplog.messages == [
        "closed the connection of 10.0.0.7:51000: its address has 2 connections already"
    ]
    assert listening.served("10.0.0.8") == [True]
    first.leave()
    assert listening.served(HOST) == [True]


def test_an_address_may_have_a_limit_of_its_own() -> None:
    listening = Listening(
        max_connections_per_ip="0", max_connections_per_ip_overrides="10.0.0.7:1, ::ffff:10.0.0.8:1,a.b:1"
    )
    assert listening.served(HOST, "10.0.0.8", "10.0.0.9") == [True, True, False]
    assert listening.served("::ffff:10.0.0.7") == [True]
    listening.resolving["a.b"].callback(["10.0.0.9", "::ffff:10.0.0.10"])
    assert listening.served("10.0.0.9", "10.0.0.10", "10.0.0.11") == [True, True, False]


def test_a_host_name_without_addresses_has_no_effect() -> None:
    listening = Listening(max_connections_per_ip_overrides="a.b:0")
    assert listening.served(HOST) == [True]
    listening.resolving["a.b"].errback(OSError("no such host"))
    assert listening.served(HOST) == [True]


def test_addresses_of_a_former_override_do_not_count() -> None:
    listening = Listening(max_connections_per_ip_overrides="a.b:0")
    assert listening.served(HOST) == [True]
    listening.limit(max_connections_per_ip_overrides="")
    assert listening.served(HOST) == [True]
    listening.resolving["a.b"].callback([HOST])
    assert listening.served(HOST) == [True]


def test_a_connection_beyond_all_waits_for_a_place() -> None:
    listening = Listening(max_connections="2")
    first, second = connected(listening), connected(listening)
    assert listening.port.reads
    third, fourth = connected(listening), connected(listening)
    assert (third.is_read, fourth.is_read, listening.port.reads) == (False, False, False)
    first.leave()
    assert (third.is_read, fourth.is_read, listening.port.reads) == (True, False, False)
    fourth.leave()
    listening.clock.advance(LOOK_S)
    third.leave()
    second.leave()
    assert listening.connections.connections == set()
    assert connected(listening).is_read
    assert listening.clock.getDelayedCalls()[1:] == []  # the connection's own


def test_accepting_goes_on_when_nobody_waits() -> None:
    listening = Listening(max_connections="1")
    first, second = connected(listening), connected(listening)
    assert not listening.port.reads
    first.leave()
    assert (second.is_read, listening.port.reads) == (True, True)


def test_a_higher_limit_is_seen_soon() -> None:
    listening = Listening(max_connections="1")
    _, second = connected(listening), connected(listening)
    listening.limit(max_connections="2")
    assert not second.is_read
    listening.clock.advance(LOOK_S)
    assert (second.is_read, listening.port.reads) == (True, True)


def test_a_lower_limit_closes_the_least_active() -> None:
    listening = Listening(max_connections="3")
    peers = [connected(listening) for _ in range(3)]
    listening.clock.advance(1)
    peers[1].send(frame(b"a"))
    listening.limit(max_connections="1")
    connected(listening)
    assert [peer.is_closed for peer in peers] == [True, False, True]


# ---- memory


def begin(payload: bytes, sent_bytes: int) -> bytes:
    return frame(payload)[:sent_bytes]


def test_a_request_in_pieces_is_read_on_while_there_is_memory() -> None:
    listening = Listening()
    peer = connected(listening)
    peer.send(begin(bytes(MEMORY), MEMORY))
    assert not peer.is_read  # it alone fills the memory
    listening.clock.advance(INTAKE_LOOK_S)
    assert peer.is_read
    peer.send(frame(bytes(MEMORY))[MEMORY:])
    assert listening.requests == [bytes(MEMORY)]


def test_whoever_sends_more_than_its_share_waits_and_others_do_not() -> None:
    listening = Listening()
    large = [connected(listening) for _ in range(3)]
    for peer in large:
        peer.send(begin(bytes(MEMORY), MEMORY * 2 // 5))
    assert [peer.is_read for peer in large] == [True, True, False]
    small = connected(listening)
    small.send(begin(bytes(1000), 500))
    assert small.is_read
    small.send(frame(bytes(1000))[500:])
    assert listening.requests == [bytes(1000)]
    listening.clock.advance(INTAKE_LOOK_S)
    assert large[2].is_read  # one goes on
    large[0].send(bytes(1))
    assert not large[0].is_read
    large[1].leave()
    listening.clock.advance(INTAKE_LOOK_S)
    assert large[0].is_read


def test_replies_that_nobody_reads_take_from_the_same_memory() -> None:
    listening = Listening()
    listening.unread.bytes = MEMORY
    for _ in range(3):
        connected(listening).send(begin(bytes(1000), 500))
    large = connected(listening)
    large.send(begin(bytes(MEMORY), MEMORY // 4))
    assert not large.is_read
    listening.clock.advance(INTAKE_LOOK_S)
    assert not large.is_read
    listening.clock.advance(PATIENCE_S)
    assert large.is_read
    large.send(bytes(1))
    other = connected(listening)
    other.send(begin(bytes(MEMORY), MEMORY // 4))
    assert [large.is_read, other.is_read] == [True, False]
    listening.unread.bytes = 0
    listening.clock.advance(INTAKE_LOOK_S)
    assert other.is_read


def test_one_that_goes_on_but_sends_nothing_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    listening = Listening()
    first, second = connected(listening), connected(listening)
    for peer in (first, second):
        peer.send(begin(bytes(MEMORY), MEMORY * 3 // 5))
    assert [peer.is_read for peer in (first, second)] == [True, False]
    listening.clock.advance(INTAKE_LOOK_S)
    assert second.is_read
    first.send(bytes(1))
    assert not first.is_read
    for _ in range(int((PATIENCE_S + 1) / INTAKE_LOOK_S)):
        listening.clock.advance(INTAKE_LOOK_S)
    assert (second.is_closed, first.is_read) == (True, True)
    assert caplog.messages == [
        "closed the connection of 10.0.0.7:51000: sent no whole request within 30 s, while others wait for "
        "its memory"
    ]


def test_the_bound_by_default() -> None:
    clock = Clock()
    unread = Unread(clock, Rounds(clock))
    intake = Intake(clock, unread, -1)
    waits: list[Wait] = []

    class Sender:
        def wait(self, reason: Wait) -> None:
            waits.append(reason)

        def go_on(self, reason: Wait) -> None:
            """Not called."""

        refuse_slow = print

    intake.count(Sender(), MOST_BYTES - 1)
    assert waits == []
    intake.count(Sender(), MOST_BYTES)
    assert waits == [Wait.MEMORY]


# ---- how fast


def at_rate(rate: int, **limits: str) -> Listening:
    return Listening(max_connection_creation_rate=str(rate), **limits)


def test_connections_beyond_the_rate_wait_and_none_is_accepted_meanwhile() -> None:
    listening = at_rate(1)
    peers = [listening.connect() for _ in range(12)]
    assert [peer.is_read for peer in peers if peer] == [True] * 10 + [False] * 2
    assert not listening.port.reads
    listening.clock.advance(0.999)
    assert [peer.is_read for peer in peers if peer].count(True) == 10
    listening.clock.advance(0.001)
    assert [peer.is_read for peer in peers if peer].count(True) == 11
    assert not listening.port.reads, "the twelfth waits for its own time"
    listening.clock.advance(1)
    assert [peer.is_read for peer in peers if peer].count(True) == 12
    assert listening.port.reads


def test_a_rate_that_is_changed_counts_from_the_next_connection_on() -> None:
    listening = at_rate(1)
    for _ in range(10):
        listening.connect()
    listening.limit(max_connection_creation_rate="100")
    peer = listening.connect()
    assert peer is not None
    assert peer.is_read


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    listening = Listening()
    config, warnings = new_config({"listener.name.plaintext.max.connection.creation.rate": "1"})
    assert not warnings
    listening.connections.pace._config = config
    peers = [listening.connect() for _ in range(11)]
    assert [peer.is_read for peer in peers if peer].count(True) == 10


def test_a_connection_beyond_the_rate_of_its_address_is_closed_after_a_while() -> None:
    listening = Listening()
    listening.quotas.set(HOST, 1)
    peers = [listening.connect() for _ in range(11)]
    other = listening.connect("10.0.0.8")
    late = peers[-1]
    assert late is not None
    assert other is not None
    assert (late.is_read, other.is_read) == (False, True)
    assert listening.port.reads
    listening.clock.advance(0.999)
    assert not late.is_closed
    listening.clock.advance(0.001)
    assert late.is_closed


def test_what_is_refused_for_its_address_does_not_count() -> None:
    listening = at_rate(2)
    listening.quotas.set(None, 1)
    refused = [listening.connect() for _ in range(20)][10:]
    assert not any(peer.is_read for peer in refused if peer)
    others = [listening.connect(f"10.0.1.{number}") for number in range(10)]
    assert all(peer.is_read for peer in others if peer)


def test_an_address_in_java_s_words_and_a_name() -> None:
    listening = Listening()
    rate_of = listening.addresses.of
    listening.quotas.set("10.7", 1)
    listening.quotas.set("far.example", 2)
    assert (rate_of("10.0.0.7"), rate_of("10.0.0.9")) == (1, UNLIMITED)
    listening.resolving["far.example"].callback(["::ffff:10.0.0.9", "10.0.0.10"])
    assert (rate_of("10.0.0.9"), rate_of("10.0.0.10")) == (2, UNLIMITED)
    listening.quotas.set(None, 3)
    assert (rate_of("10.0.0.9"), rate_of("10.0.0.10")) == (2, 3)
    listening.quotas.set("10.7", None)
    assert rate_of("10.0.0.7") == 3
    listening.quotas.set(None, None)
    assert rate_of("10.0.0.7") == UNLIMITED


def test_a_client_that_goes_while_it_waits() -> None:
    listening = at_rate(1)
    peers = [listening.connect() for _ in range(12)]
    assert peers[10]
    peers[10].leave()
    listening.clock.advance(1)
    listening.clock.advance(1)
    assert peers[11]
    assert peers[11].is_read


def test_a_connection_waits_for_its_time_and_then_for_a_place() -> None:
    listening = at_rate(1, max_connections="10")
    peers = [listening.connect() for _ in range(11)]
    first, last = peers[0], peers[10]
    assert first
    assert last
    listening.clock.advance(1)
    assert not last.is_read
    first.leave()
    assert last.is_read


def test_what_a_connection_has_sent_meanwhile_waits_for_the_place_too() -> None:
    listening = at_rate(1, max_connections="10")
    peers = [listening.connect() for _ in range(11)]
    first, last = peers[0], peers[10]
    assert first
    assert last
    last.send(frame(b"a"))
    listening.clock.advance(1)
    assert listening.requests == []
    first.leave()
    assert listening.requests == [b"a"]
