"""HTTP over twisted.web: from a request's bytes to its route, and from an answer to bytes, within bounds."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import parse_qsl, urlencode

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

from kshim.control.long import encode
from kshim.http.answers import Answer, Asked, HttpError, error_answer, new_slices
from kshim.http.guard import Guard
from kshim.http.html import error_page
from kshim.http.places import Busy, Places
from kshim.http.routes import Routes
from kshim.network.addresses import java_host
from kshim.storage.interfaces import StorageError

if TYPE_CHECKING:
    from kshim.http.facts import Facts
    from kshim.storage.clock import Timer

logger = logging.getLogger(__name__)

PAGES = "/page/"
MOST_BODY_BYTES = 64 * 1024
IDLE_S = 60
REQUEST_S = 10.0
"""Time within which a client must send a request, counted from the connection or the request's first byte."""
READ_S = 30.0
"""Time within which a client must read what was sent; else its connection is closed."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of each answer. The page needs nothing from elsewhere, and no inline script or style."""


class Site(http.HTTPFactory):
    """Makes the connections of one listener."""

    noisy = False

    def __init__(self, facts: Facts, routes: Routes, guard: Guard) -> None:
        super().__init__(timeout=IDLE_S, reactor=facts.clock)  # type: ignore[arg-type]
        self.facts, self.routes, self.guard = facts, routes, guard
        self.places = Places()

    def buildProtocol(self, addr: object) -> Any:
        """A connection."""
        return Channel(self, getattr(addr, "host", ""))

    def startFactory(self) -> None:  # noqa: N802
        """Do nothing: the base class would open its log of requests."""

    def stopFactory(self) -> None:  # noqa: N802
        """Do nothing: the base class would close its log of requests."""

    def log(self, request: http.Request) -> None:
        """Do nothing: the base class would log the request."""

    def abort(self) -> None:
        """Close all connections."""
        for channel in self.places:
            channel.abort()


class Channel(http.HTTPChannel):
    """One connection of a client."""

    factory: Site
    transport: Any

    def __init__(self, factory: Site, host: str) -> None:
        super().__init__()
        self.factory = factory
        self.host = host
        """The client's address."""
        self._is_answering = False
        self._deadline: Timer | None = None
        self.requestFactory = Request
        self.timeOut = IDLE_S

    def callLater(self, delay: float, function: Callable[[], object]) -> Timer:
        """Schedule a timeout of the base class on the server's clock."""
        return self.factory.facts.clock.callLater(delay, function)

    def connectionMade(self) -> None:
        self.factory.places.take(self)
        super().connectionMade()
        self._abort_after(REQUEST_S)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.factory.places.leave(self)
        self._forget_deadline()
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        if self._deadline is None and not self._is_answering:
            self._abort_after(REQUEST_S)
        super().dataReceived(data)

    def allContentReceived(self) -> None:  # noqa: N802
        """Begin to answer: the whole request has arrived."""
        self._forget_deadline()
        self._is_answering = True
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:  # noqa: N802
        """Wait for the next request. The client may still have to read the end of the answer."""
        self._is_answering = False
        super().requestDone(request)

    def loseConnection(self) -> None:  # noqa: N802
        """Close once the client has read all that was sent, after READ_S at the latest."""
        self._forget_deadline()
        self._abort_after(READ_S)
        super().loseConnection()

    @property
    def busy(self) -> Busy:
        """Return how busy the connection is."""
        if not self._is_answering:
            return Busy.WAITS
        return Busy.UNREAD if any(request.is_paused for request in self.requests) else Busy.ANSWERS

    def _abort_after(self, delay_s: float) -> None:
        self._deadline = self.callLater(delay_s, self.abort)

    def _forget_deadline(self) -> None:
        deadline, self._deadline = self._deadline, None
        if deadline is not None and deadline.active():
            deadline.cancel()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abortConnection()


class Request(http.Request):
    """One request. The base class has parsed its head."""

    channel: Channel
    content: BinaryIO
    _body_bytes = 0
    is_paused = False
    """True while the client does not read its answer."""
    _has_room: Deferred[None] | None = None
    """Fires when the client has read what was sent; None while nobody waits for that."""

    # ---- receiving

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        super().gotLength(0)
        if length is not None and length > MOST_BODY_BYTES:
            self._refuse_body()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        if self._body_bytes > MOST_BODY_BYTES:
            return
        self._body_bytes += len(data)
        if self._body_bytes > MOST_BODY_BYTES:
            self._refuse_body()
        else:
            self.content.write(data)

    def _refuse_body(self) -> None:
        """Answer 413 without waiting for the rest of the body, and close."""
        self._body_bytes = MOST_BODY_BYTES + 1
        body = encode({"error": f"expected a body of at most {MOST_BODY_BYTES} bytes"}) + b"\n"
        head = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: application/json\r\n"
        self.channel.transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.channel.loseConnection()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """Begin to answer. The base class would parse forms first; no route takes one."""
        self.method, self.uri, self.clientproto = command, path, version
        if self._body_bytes <= MOST_BODY_BYTES:
            answering = Deferred.fromCoroutine(self._answer())
            self.notifyFinish().addErrback(lambda _: answering.cancel())
            answering.addErrback(self._failed)

    # ---- answering

    async def _answer(self) -> None:
        answer, body, rest = await self._begun()
        try:
            self._send_head(answer, None if rest else len(body))
            self.write(body)
            if rest is not None and self.method != b"HEAD":
                await self._send(rest)
            self.finish()
        finally:
            if isinstance(rest, AsyncGeneratorType) and not rest.ag_running:
                await rest.aclose()

    async def _send(self, rest: AsyncGenerator[bytes, None]) -> None:
        """Send a body as fast as the client reads it."""
        self.registerProducer(_Producer(self), True)
        await self._read()
        async for piece in rest:
            self.write(piece)
            await self._read()
        self.unregisterProducer()

    async def _begun(self) -> tuple[Answer, bytes, AsyncGenerator[bytes, None] | None]:
        """Return the answer, its body, and None; or the answer, the body's first piece, and the other pieces.

        An error becomes an answer that says what is wrong. The first piece is made before the head is sent,
        so that its errors can still become such an answer.
        """
        try:
            answer = await self._routed()
            if isinstance(answer.body, bytes):
                return answer, answer.body, None
            return answer, await anext(answer.body), answer.body
        except HttpError as error:
            is_page = self._path().startswith(PAGES) and error.status in (400, 404, 503)
            answer = error_page(error) if is_page else error_answer(error)
        except StorageError as error:
            answer = error_answer(HttpError(503, str(error)))
        except Exception as error:
            logger.error("%s %s failed: %r", _text(self.method), self._path(), error, exc_info=error)
            answer = error_answer(HttpError(500, "the server failed; its log says why"))
        assert isinstance(answer.body, bytes)
        return answer, answer.body, None

    async def _routed(self) -> Answer:
        """Check the token, find the route, and return its answer. Raises HttpError."""
        site, method, path = self.channel.factory, _text(self.method), self._path()
        headers = self._headers()
        query = dict(parse_qsl(_text(self.uri.partition(b"?")[2]), keep_blank_values=True))
        if method in ("GET", "HEAD") and site.guard.knows(query.get("token", "")):
            return _remember(site.guard, path, query)
        cookies = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in self.received_cookies.items()
        }
        refusal = site.guard.refusal(method, path, headers, cookies)
        if refusal is not None:
            challenge = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
            raise HttpError(refusal.status, refusal.why, challenge)
        route, names = site.routes.find(method, path, query)
        self.content.seek(0)
        asked = Asked(
            names=names,
            query=query,
            headers=headers,
            body=self.content.read(),
            host=java_host(self.getClientAddress().host),
            slices=new_slices(site.facts.rounds),
        )
        return await route.function(site.facts, asked)

    def _path(self) -> str:
        return _text(self.uri.partition(b"?")[0])

    def _headers(self) -> Mapping[str, str]:
        found = self.requestHeaders.getAllRawHeaders()
        return {_text(name).lower(): _text(values[-1]) for name, values in found}

    def _send_head(self, answer: Answer, length: int | None) -> None:
        self.setResponseCode(answer.status)
        for name, value in {**HEADERS, "Content-Type": answer.content_type, **answer.headers}.items():
            self.setHeader(name, value)
        if length is not None:
            self.setHeader("Content-Length", str(length))

    # ---- a client that does not read

    async def _read(self) -> None:
        """Return when the client has read what was sent. Disconnect a client that takes READ_S."""
        if not self.is_paused:
            return
        clock = self.channel.factory.facts.clock
        self._has_room = Deferred()
        timer = clock.callLater(READ_S, self.channel.abort)
        try:
            await self._has_room
        finally:
            self._has_room = None
            if timer.active():
                timer.cancel()

    def pause(self) -> None:
        """Note that the client does not read."""
        self.is_paused = True

    def go_on(self) -> None:
        """Note that the client has read."""
        self.is_paused = False
        if self._has_room is not None and not self._has_room.called:
            self._has_room.callback(None)

    def _failed(self, failure: Failure) -> None:
        """Ignore that the client is gone. If the rest of an answer cannot be made, log why, and cut the
        connection.
        """
        if isinstance(failure.value, CancelledError):
            return
        logger.error("HTTP: %s failed: %r", self._path(), failure.value, exc_info=failure.value)
        if self.channel is not None:
            self.channel.abort()


class _Producer:
    """A request's answer, as its transport sees it."""

    def __init__(self, request: Request) -> None:
        self.pauseProducing = request.pause
        self.resumeProducing = request.go_on

    def stopProducing(self) -> None:
        """Do nothing: the client is gone, and `notifyFinish` cancels the answer."""


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _remember(guard: Guard, path: str, query: Mapping[str, str]) -> Answer:
    """Redirect the browser to the same page without the token, so that the token leaves the address bar.

    The browser keeps a cookie instead.
    """
    rest = urlencode({name: value for name, value in query.items() if name != "token"})
    location = f"/{path.lstrip('/')}" + (f"?{rest}" if rest else "")
    cookie = f"{guard.cookie_name}={guard.cookie}; Path=/; HttpOnly; SameSite=Lax"
    return Answer(b"", status=303, headers={"Location": location, "Set-Cookie": cookie})
