"""What a client of the listener can take: connections, bytes and time."""

from __future__ import annotations

from kshim.control.long import PIECE_BYTES
from kshim.http.channel import IDLE_S, MOST_BODY_BYTES, MOST_CONNECTIONS, READ_S
from tests.http.harness import Kshim, Slow, create_topic

JSON = {"Content-Type": "application/json"}


def test_connections_are_counted() -> None:
    kshim = Kshim()
    browsers = [kshim.browser() for _ in range(MOST_CONNECTIONS)]
    assert kshim.browser().is_refused
    browsers.pop().close()
    assert kshim.get("/healthz").status == 200


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
