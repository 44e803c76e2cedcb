"""A client's encrypted connection: who it is, what it sends and is sent, and what may go wrong."""

from __future__ import annotations

import os
import ssl
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kshim.callers.mistake import Mistake
from kshim.callers.principal import Principal
from kshim.certificates.authority import Authority
from kshim.network.encrypted import MOST_SEALED_BYTES, SEAL_BYTES
from kshim.network.tls import HANDSHAKE_S
from tests.network.tls_pair import Pair, Reactor, Receiver, alice, authority, new_tls

MORE_THAN_A_SOCKET_HOLDS = 16 * 1024 * 1024


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


# ---- who a client is


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_without_a_certificate(pair: Pair, version: ssl.TLSVersion) -> None:
    pair.handshake(minimum_version=version, maximum_version=version)
    pair.send(b"request")
    assert (pair.protocol.principals, bytes(pair.protocol.received)) == ([None], b"request")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_another_protocol_may_go_on_once_the_client_has_named_the_server(version: ssl.TLSVersion) -> None:
    names: list[str | None] = []
    further = Receiver()

    def goes_on(_: object, name: str | None) -> Any:
        names.append(name)
        return further

    reactor = Reactor()
    pair = Pair(new_tls(reactor, by_name=goes_on), reactor)
    pair.handshake(minimum_version=version, maximum_version=version)
    pair.send(b"request")
    assert names == ["kshim.example"]
    assert (further.principals, bytes(further.received)) == ([None], b"request")
    assert pair.protocol.principals == []
    pair.close()


def test_a_client_may_name_no_server() -> None:
    names: list[str | None] = []
    reactor = Reactor()
    pair = Pair(new_tls(reactor, by_name=lambda first, name: names.append(name) or first), reactor)
    pair.handshake(server_hostname="127.0.0.1")
    assert names == [None]
    pair.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_client_is_who_its_certificate_says(
    tmp_path: Path, version: ssl.TLSVersion, client_auth: str
) -> None:
    pair = Pair(ssl_client_auth=client_auth)
    pair.handshake(alice(), tmp_path, minimum_version=version, maximum_version=version)
    assert pair.protocol.principals == [Principal("User", "CN=Alice,OU=Sales")]
    pair.close()


def test_a_certificate_may_be_left_out_where_it_is_only_requested() -> None:
    pair = Pair(ssl_client_auth="requested")
    pair.handshake()
    assert pair.protocol.principals == [None]
    pair.close()


def test_the_rules_make_the_principal(tmp_path: Path) -> None:
    pair = Pair(ssl_client_auth="required", ssl_principal_mapping_rules=r"RULE:^.*CN=([^,]*).*$/$1/L,DEFAULT")
    pair.handshake(alice(), tmp_path)
    assert pair.protocol.principals == [Principal("User", "alice")]
    pair.close()


def test_a_certificate_that_no_rule_is_for(tmp_path: Path) -> None:
    pair = Pair(ssl_client_auth="required", ssl_principal_mapping_rules=r"RULE:^CN=([^,]*)$/$1/")
    pair.handshake(alice(), tmp_path)
    assert pair.protocol.principals == []
    assert pair.protocol.mistakes == [(Mistake.NO_RULE, {"name": "CN=Alice,OU=Sales"})]
    pair.close()


def test_a_listener_with_sasl_asks_another_one_who_its_clients_are(tmp_path: Path) -> None:
    reactor = Reactor()
    pair = Pair(new_tls(reactor, names_clients=False, ssl_client_auth="required"), reactor)
    pair.handshake(alice(), tmp_path)
    assert pair.protocol.principals == [None]
    pair.close()


# ---- certificates that are refused


def refused(pair: Pair, *arguments: object, **options: object) -> tuple[Mistake, dict[str, object]]:
    """The server's reason for closing a client's connection, which the client's alert agrees with."""
    with suppress(ssl.SSLError):  # with TLS 1.3 the client learns it when it reads
        pair.handshake(*arguments, **options)
        pair.read(1)
        raise AssertionError("it read something")
    (mistake,) = pair.protocol.mistakes
    assert not pair.protocol.principals
    for _ in range(3):
        pair.swap_raw()
    assert pair.protocol.lost
    pair.close()
    return mistake


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_that_is_required_and_missing(version: ssl.TLSVersion) -> None:
    mistake, _ = refused(Pair(ssl_client_auth="required"), maximum_version=version)
    assert mistake is Mistake.NO_CERTIFICATE


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_an_expired_certificate(tmp_path: Path, client_auth: str) -> None:
    expired = authority().client("alice", days=-1)
    mistake, details = refused(Pair(ssl_client_auth=client_auth), expired, tmp_path)
    assert (mistake, details["why"]) == (Mistake.CERTIFICATE, "certificate has expired")


def test_a_foreign_certificate(tmp_path: Path) -> None:
    foreign = Authority().client("alice")
    mistake, details = refused(Pair(ssl_client_auth="requested"), foreign, tmp_path)
    assert (mistake, details["why"]) == (Mistake.CERTIFICATE, "unable to get local issuer certificate")


def test_a_client_that_does_not_trust_the_server() -> None:
    mistake, details = refused(Pair(), cadata=Authority("CN=another").certificate_pem)
    assert (mistake, details["why"]) == (Mistake.NOT_TRUSTED, "tlsv1 alert unknown ca")


def test_versions_that_have_nothing_in_common() -> None:
    mistake, _ = refused(Pair(ssl_enabled_protocols="TLSv1.3"), maximum_version=ssl.TLSVersion.TLSv1_2)
    assert mistake is Mistake.TLS_VERSION


def test_suites_that_have_nothing_in_common() -> None:
    suites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    mistake, _ = refused(Pair(ssl_cipher_suites=suites), ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
    assert mistake is Mistake.CIPHER_SUITE
    pair = Pair(ssl_cipher_suites=suites)
    pair.handshake()
    assert pair.client.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)
    pair.close()


# ---- what is not TLS, or not all of it


@pytest.mark.parametrize(
    ("start", "mistake", "answer"),
    [
        (bytes.fromhex("0000001a 0012 0004 00000001"), Mistake.NO_TLS, b""),
        (b"GET / HTTP/1.1\r\n\r\n", Mistake.HTTP, b"HTTP/1.1 400 Bad Request"),
        (b"hello there", Mistake.TEXT, b""),
        (b"\x00", Mistake.NO_TLS, b""),
    ],
)
def test_clients_that_speak_plainly(pair: Pair, start: bytes, mistake: Mistake, answer: bytes) -> None:
    pair.socket.sendall(start)
    told = pair.swap_raw() + pair.swap_raw()
    assert [found for found, _ in pair.protocol.mistakes] == [mistake]
    assert told.startswith(answer)
    assert bool(told) == bool(answer)
    assert pair.protocol.lost


def test_garbage_that_begins_as_tls_does(pair: Pair) -> None:
    pair.socket.sendall(b"\x16\x03\x01\x00\x05" + b"\xff" * 100)
    pair.swap_raw()
    assert [found for found, _ in pair.protocol.mistakes] == [Mistake.TLS_FAILED]


@pytest.mark.parametrize("cut", [0, 1, 5, 100])
def test_a_handshake_that_stalls(pair: Pair, cut: int) -> None:
    pair.begin()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.do_handshake()
    pair.socket.sendall(pair._outgoing.read()[:cut])
    pair.reactor.turn()
    pair.reactor.advance(HANDSHAKE_S - 1)
    assert pair.protocol.mistakes == []
    pair.reactor.advance(1)
    assert pair.protocol.mistakes == [(Mistake.NO_HANDSHAKE, {"seconds": HANDSHAKE_S})]
    pair.reactor.turn()
    assert pair.protocol.lost


def test_who_waits_for_a_place_may_take_its_time(pair: Pair) -> None:
    pair.transport.pauseProducing()
    pair.reactor.advance(3 * HANDSHAKE_S)
    assert pair.protocol.mistakes == []
    pair.transport.resumeProducing()
    pair.handshake()
    assert pair.protocol.principals == [None]


def test_a_handshake_that_is_done_has_no_time_limit(pair: Pair) -> None:
    pair.handshake()
    assert pair.reactor.getDelayedCalls() == []


def test_the_end_of_a_connection_is_said_by_each_side(pair: Pair) -> None:
    pair.handshake()
    pair.transport.unregisterProducer()
    pair.transport.write(b"last")
    pair.transport.loseConnection()
    assert pair.read(4) == b"last"
    assert pair._until_done(lambda: pair.client.read(1)) == b""
    assert pair.protocol.lost


def test_a_client_that_says_that_it_goes(pair: Pair) -> None:
    pair.handshake()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.swap_raw()
    assert pair.protocol.lost
    assert pair.protocol.mistakes == []


def test_a_client_that_goes_without_a_word(pair: Pair) -> None:
    pair.handshake()
    pair.socket.close()
    pair.reactor.turn()
    assert pair.protocol.lost
    assert pair.protocol.mistakes == []


def test_the_session_s_memory_is_free_as_soon_as_the_client_is_gone(pair: Pair) -> None:
    pair.handshake()
    session = weakref.ref(pair.transport._session)
    assert session() is not None
    pair.socket.close()
    pair.reactor.turn()
    assert pair.protocol.lost
    assert session() is None


def test_bytes_that_were_changed_on_their_way(pair: Pair) -> None:
    pair.handshake()
    pair.client.write(b"request")
    sealed = bytearray(pair._outgoing.read())
    sealed[-1] ^= 1
    pair.socket.sendall(sealed)
    pair.swap_raw()
    assert [found for found, _ in pair.protocol.mistakes] == [Mistake.TLS_FAILED]
    assert pair.protocol.received == b""


# ---- receiving and sending


def test_a_large_request_is_received_where_it_is_to_lie(pair: Pair) -> None:
    pair.handshake()
    data = os.urandom(300_000)
    memory = bytearray(len(data))
    pair.protocol.large = memoryview(memory)
    pair.send(data)
    assert memory == data


def test_nothing_is_handed_over_while_the_protocol_pauses(pair: Pair) -> None:
    pair.handshake()
    pair.protocol.large = memoryview(bytearray(3))
    pair.protocol.on_data = pair.transport.pauseProducing
    pair.client.write(b"onetwo")
    pair.swap_raw()
    assert pair.protocol.received == b"one"
    pair.transport.resumeProducing()
    pair.reactor.turn()
    assert pair.protocol.received == b"onetwo"


def test_small_messages_are_handed_over_together(pair: Pair) -> None:
    pair.handshake()
    calls: list[None] = []
    pair.protocol.on_data = lambda: calls.append(None)
    for _ in range(100):
        pair.client.write(b"x" * 100)
    pair.swap_raw()
    assert (pair.protocol.received, len(calls)) == (b"x" * 10_000, 1)


def test_a_request_behind_the_last_message_of_the_handshake(pair: Pair) -> None:
    pair.begin()
    pair._until_done(pair.client.do_handshake)
    pair.client.write(b"request")
    pair.swap_raw()
    pair.reactor.turn()
    assert pair.protocol.received == b"request"


def test_replies_of_many_pieces(pair: Pair) -> None:
    pair.handshake()
    pieces = [os.urandom(size) for size in (4, 0, 100, SEAL_BYTES - 1, 3 * SEAL_BYTES + 7, 1)]
    pair.transport.send_at_once(pieces)
    assert pair.read(sum(map(len, pieces))) == b"".join(pieces)
    pair.transport.send_at_once([b"next"])
    pair.transport.write(b" turn")
    assert pair.read(9) == b"next turn"
    assert pair.transport._unsent_bytes == 0


def test_a_client_that_does_not_read_costs_one_piece(pair: Pair) -> None:
    pair.handshake()
    pair.transport.writeSequence([bytes(MORE_THAN_A_SOCKET_HOLDS)])
    for _ in range(100):
        pair.reactor.turn()
    assert pair.protocol.paused_times == 1
    assert len(pair.transport._sealed) <= SEAL_BYTES + 16 * 1024
    assert pair._outgoing.pending == 0
    assert len(pair.read(MORE_THAN_A_SOCKET_HOLDS)) == MORE_THAN_A_SOCKET_HOLDS


def test_what_tls_itself_answers_is_bounded(pair: Pair) -> None:
    pair.handshake()
    pair.transport._put(bytes(MOST_SEALED_BYTES + 1))
    pair.reactor.advance(0)
    assert pair.protocol.lost


def test_keys_and_rules_are_exchanged_for_later_connections(tmp_path: Path) -> None:
    reactor = Reactor()
    tls = new_tls(reactor)
    first = Pair(tls, reactor)
    first.handshake()
    tls.use(new_tls(reactor, ssl_client_auth="required").settings)
    second = Pair(tls, reactor)
    second.handshake(alice(), tmp_path)
    assert second.protocol.principals == [Principal("User", "CN=Alice,OU=Sales")]
    first.send(b"still there")
    assert first.protocol.received == b"still there"
    first.close()
    second.close()
