"""Limits for a client of the listener: connections, bytes and time."""

from __future__ import annotations

import pytest
from twisted.internet.address import IPv4Address

from kshim.control.long import PIECE_BYTES
from kshim.http.channel import IDLE_S, MOST_BODY_BYTES, READ_S, REQUEST_S
from kshim.http.places import MOST_CONNECTIONS, MOST_OF_ADDRESS
from tests.http.harness import Browser, Kshim, Slow, create_topic
from tests.network.transport import Transport

JSON = {"Content-Type": "application/json"}


def at(host: str, transport: Transport | None = None) -> Transport:
    """A connection from an address."""
    transport = transport or Transport()
    transport.peerAddr = IPv4Address("TCP", host, 51000)
    return transport


def is_closed(browser: Browser) -> bool:
    return bool(browser.transport.aborted)


def test_the_oldest_connection_without_a_request_gives_way() -> None:
    kshim = Kshim()
    browsers = [kshim.browser(at("10.0.0.1")) for _ in range(MOST_OF_ADDRESS)]
    browsers[0].send("GET", "/events")
    browsers[1].channel.dataReceived(b"GET / HT")
    assert kshim.get("/healthz").status == 200
    assert not any(map(is_closed, browsers))
    one_more = kshim.browser(at("10.0.0.1"))
    assert [is_closed(each) for each in browsers[:3]] == [False, True, False]
    assert one_more.ask("GET", "/healthz").status == 200


def test_an_address_cannot_take_all_places() -> None:
    kshim = Kshim()
    few = [kshim.browser(at("10.0.0.2")) for _ in range(MOST_CONNECTIONS - MOST_OF_ADDRESS)]
    many = [kshim.browser(at("10.0.0.1")) for _ in range(MOST_OF_ADDRESS + 5)]
    assert sum(map(is_closed, many)) == 5
    third = kshim.browser(at("10.0.0.3"))
    assert sum(map(is_closed, many)) == 6
    assert not any(map(is_closed, [*few, third]))


def test_a_client_that_does_not_read_gives_way_to_one_that_does() -> None:
    kshim = Kshim()
    create_topic(kshim.client(), "large", 2000)
    reads = [kshim.browser(at("10.0.0.1")) for _ in range(3)]
    for browser in reads:
        browser.send("GET", "/events")
    unread = [kshim.browser(at("10.0.0.1", Slow())) for _ in range(MOST_OF_ADDRESS - 3)]
    for browser in unread:
        browser.send("GET", "/topics")
    assert not any(map(is_closed, [*reads, *unread]))
    assert kshim.browser(at("10.0.0.1")).ask("GET", "/readyz").status == 200
    assert [is_closed(each) for each in [*reads, unread[0], unread[1]]] == [False, False, False, True, False]


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1"])
def test_a_request_that_does_not_come_whole_is_cut_off(sent: bytes) -> None:
    kshim = Kshim()
    browser = kshim.browser()
    for second in range(int(REQUEST_S)):
        browser.channel.dataReceived(sent[second : second + 1])
        assert not is_closed(browser)
        kshim.reactor.advance(1)
    assert is_closed(browser)


def test_the_time_for_a_request_begins_with_each() -> None:
    kshim = Kshim()
    browser = kshim.browser()
    for _ in range(5):
        browser.ask("GET", "/healthz")
        kshim.reactor.advance(REQUEST_S - 1)
    assert not is_closed(browser)
    browser.channel.dataReceived(b"GET")
    kshim.reactor.advance(REQUEST_S)
    assert is_closed(browser)


def test_the_end_of_an_answer_that_is_not_read_is_cut_off() -> None:
    kshim = Kshim()
    browser = kshim.browser()
    browser.ask("GET", "/healthz", {"Connection": "close"})
    assert browser.transport.disconnecting
    kshim.reactor.advance(READ_S)
    assert is_closed(browser)


def test_an_idle_connection_is_closed() -> None:
    kshim = Kshim()
    browser = kshim.browser()
    browser.ask("GET", "/healthz")
    kshim.reactor.advance(IDLE_S + 1)
    assert browser.transport.disconnecting


def test_a_body_that_is_announced_too_large_is_not_received() -> None:
    kshim = Kshim(http_steering_enable=True)
    browser = kshim.browser()
    reply = browser.ask(
        "POST", "/commands/describe", {**JSON, "Content-Length": str(MOST_BODY_BYTES + 1)}, b"["
    )
    assert (reply.status, reply.json) == (
        413,
        {"error": f"expected a body of at most {MOST_BODY_BYTES} bytes"},
    )
    assert browser.transport.disconnecting


def test_a_body_in_chunks_is_counted() -> None:
    kshim = Kshim(http_steering_enable=True)
    browser = kshim.browser()
    head = "POST /commands/describe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    browser.channel.dataReceived(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    for _ in range(MOST_BODY_BYTES // 0x4000):
        browser.channel.dataReceived(chunk)
    assert not browser.transport.value()
    browser.channel.dataReceived(chunk)
    assert browser.transport.value().startswith(b"HTTP/1.1 413 ")
    assert browser.transport.disconnecting
    browser.channel.dataReceived(b"0\r\n\r\n")
    assert browser.transport.value().count(b"HTTP/1.1") == 1


def test_a_header_that_does_not_end_is_cut_off() -> None:
    browser = Kshim().browser()
    browser.channel.dataReceived(b"GET / HTTP/1.1\r\n")
    received = 0
    while not browser.transport.disconnecting:
        browser.channel.dataReceived(b"X-Long: " + b"x" * 1000 + b"\r\n")
        received += 1
        assert received < 40


def test_a_large_answer_waits_for_its_reader() -> None:
    kshim = Kshim()
    create_topic(kshim.client(), "large", 2000)
    browser = kshim.browser(Slow())
    browser.send("GET", "/topics")
    received = len(browser.transport.value())
    assert received < 64 * 1024 + 2 * PIECE_BYTES
    while not browser.transport.value().endswith(b"\r\n0\r\n\r\n"):
        browser.transport.clear()
        browser.channel.resumeProducing()
        kshim.reactor.advance(0)
        assert len(browser.transport.value()) < 64 * 1024 + 2 * PIECE_BYTES
        received += len(browser.transport.value())
    assert received > 200 * 1024


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    kshim = Kshim()
    create_topic(kshim.client(), "large", 2000)
    browser = kshim.browser(Slow())
    browser.send("GET", "/topics")
    kshim.reactor.advance(READ_S + 1)
    assert browser.transport.aborted
    browser.close()
    assert kshim.get("/healthz").status == 200


def test_the_listener_goes_with_the_server() -> None:
    kshim = Kshim()
    kshim.site = kshim.server._http._site
    browser = kshim.browser()
    browser.send("GET", "/events")
    kshim.server.stop()
    assert browser.transport.aborted
    browser.close()
    assert [call for call in kshim.reactor.getDelayedCalls() if call.active()] == []
