"""kshim's own connection to an upstream broker: takes a request, returns a Deferred of its response.

    link = await connect(connector, Endpoint("10.0.0.7", 9092))
    response = await link.ask(InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000))
    link.close()

Requests are sent at once and answered in order, so several may be under way. Each has the newest version that
the broker and `schemas` both know, up to `newest`; `link.version(...)` returns it. If kshim's login has to be
renewed, that happens between two requests.

A request without an answer in time closes the link, as in Kafka's clients: the requests behind it would wait
for the same broker. All requests under way then fail with the same LinkError. A closed link stays closed. It
calls the watchers given to `on_lost`; whoever needs a link connects anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from kshim import __version__
from kshim.client.session import LoginFailed, Session
from kshim.configs.endpoint import Endpoint
from kshim.network.frames import FrameError, Frames, framed
from kshim.storage.clock import Timer, TimerClock
from kshim.upstream.connector import Connector
from kshim.upstream.entering import ALERT, SPEAKS_TLS
from kshim.upstream.lost import Lost, lost_by
from kshim.upstream.splicing import Reading
from schemas.api_key import ApiKey, api_title
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.registry import VERSIONS, decode_response, encode_request

TIMEOUT_S = 30.0
"""request.timeout.ms of Kafka's clients."""
MOST_BYTES = 512 * 1024 * 1024
"""Limit of a response; a Fetch asks for far less."""
MOST_BYTES_AT_FIRST = 1024 * 1024
"""Limit of the answer to ApiVersions. What looks like a larger size belongs to another protocol."""
_NEWEST = 32767
_ERROR_AT = 4
"""Where ApiVersions responses of all versions have their error: behind the correlation id."""


class LinkError(Exception):
    """The upstream cannot be reached, or does not answer. str() is one line for the log."""

    is_refused = False
    """True if trying again is of no use; see `Lost`."""


class _Asked(NamedTuple):
    """A request that waits for its response."""

    correlation_id: int
    read: Callable[[bytes | bytearray], object]
    """Decodes the response in a frame. Raises MalformedMessage."""
    answer: Deferred[Any]
    timer: Timer


class Link(Reading):
    """One connection to one broker, made by `connect`. Used only on the reactor thread."""

    transport: Any

    def __init__(self, clock: TimerClock, address: Endpoint, client_id: str) -> None:
        self.address = address
        """The broker's address."""
        self.versions: Mapping[int, range] = {}
        """The versions that the broker serves, by API key."""
        self.answered: ApiVersionsResponse | None = None
        """The broker's answer to ApiVersions, with its features."""
        self.made: Deferred[None] = Deferred()
        """Fires when the connection is made; errbacks LinkError."""
        self.session: Session | None = None
        self._is_proven = False
        """True once the broker has answered more than ApiVersions, which needs no login."""
        self._held: list[bytes] | None = None
        """Frames to send when the login is renewed; None if no renewal is under way."""
        self._clock = clock
        self._client_id = client_id
        self._asked: deque[_Asked] = deque()
        self._frames = Frames(MOST_BYTES_AT_FIRST)
        self._correlation_id = 0
        self._why: LinkError | None = None
        self._watchers: list[Callable[[LinkError], object]] = []

    # ---- for its user

    @property
    def is_open(self) -> bool:
        """True until the link is closed."""
        return self._why is None

    @property
    def under_way(self) -> int:
        """The number of requests that wait for their response."""
        return len(self._asked)

    def on_lost(self, watcher: Callable[[LinkError], object]) -> None:
        """Call `watcher` with the reason when the link is closed; at once, if it is closed already."""
        if self._why is not None:
            watcher(self._why)
        else:
            self._watchers.append(watcher)

    def serves(self, api_key: int) -> bool:
        """True if the broker serves an API."""
        return api_key in self.versions

    def version(self, api_key: int, newest: int = _NEWEST) -> int:
        """Return the newest version that both sides know, up to `newest`.

        Raises LinkError if there is none.
        """
        ours, theirs = VERSIONS[ApiKey(api_key)], self.versions.get(api_key, range(0))
        version = min(ours.stop, theirs.stop, newest + 1) - 1
        if version in ours and version in theirs:
            return version
        name = ApiKey(api_key).title
        raise LinkError(f"upstream broker {self.address} serves no version of {name} that kshim knows")

    def ask(
        self,
        request: Any,
        *,
        newest: int = _NEWEST,
        timeout_s: float = TIMEOUT_S,
        has_response: bool = True,
        is_read: bool = True,
    ) -> Deferred[Any]:
        """Send a request; fires with its response, errbacks LinkError.

        has_response: False for a Produce with acks=0, which fires with None at once. is_read: False for a
        response that may be large: fires with its frame, to be decoded aside.
        """
        api_key = definition(type(request)).api_key
        assert api_key is not None
        try:
            version = self.version(api_key, newest)
        except LinkError as error:
            return fail(error)

        def read(frame: bytes | bytearray) -> Any:
            if not is_read:
                return bytes(frame)
            return decode_response(api_key, version, bytes(frame))[1]

        return self._send(api_key, version, request, read if has_response else None, timeout_s)

    def ask_frame(self, frame: bytes | bytearray, *, timeout_s: float = TIMEOUT_S) -> Deferred[bytes]:
        """Send a request that is encoded already; fires with its response, in a frame with the request's own
        correlation id. Errbacks LinkError.
        """
        if self._why is not None:
            return fail(self._why)
        self._renew_login()
        correlation_id = self._next_correlation_id()
        self._write(bytes(frame[:4]) + correlation_id.to_bytes(4) + bytes(frame[8:]))
        title = api_title(int.from_bytes(frame[:2]))
        return self._expect(correlation_id, title, lambda found: bytes(frame[4:8]) + found[4:], timeout_s)

    def close(self) -> None:
        """Close the link. Requests under way fail."""
        self._end(LinkError(f"the connection to upstream broker {self.address} was closed here"))

    # ---- the transport's side

    def connectionMade(self) -> None:
        if self._why is not None:
            self.transport.abortConnection()
            return
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        self.made.callback(None)

    def dataReceived(self, data: bytes) -> None:
        self._frames.receive(data)
        try:
            while self._why is None and (frame := self._frames.next_frame()) is not None:
                self._receive(frame)
        except FrameError as error:
            if error.start.startswith(ALERT):
                self.lose(SPEAKS_TLS)
            else:
                self._end(self._no_response(f"it begins with {error.start!r}"))
        except MalformedMessage as error:
            self._end(self._no_response(str(error)))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        lost = lost_by(reason)
        if self._asked and not self._is_proven and not lost.is_refused:
            lost = Lost(f"{lost.why} without an answer: is upstream.security.protocol right?")
        self.lose(lost)

    def lose(self, lost: Lost) -> None:
        """Close the link: the connection could not be made, or was lost."""
        error = LinkError(f"upstream broker {self.address} {lost.why}")
        error.is_refused = lost.is_refused
        self._end(error)

    # ---- inside

    def negotiate(self, timeout_s: float) -> Deferred[Link]:
        """Ask which versions the broker serves. Fires with the link, errbacks LinkError."""
        return Deferred.fromCoroutine(self._negotiate(timeout_s))

    async def _negotiate(self, timeout_s: float) -> Link:
        request = ApiVersionsRequest(client_software_name="kshim", client_software_version=__version__)
        version = VERSIONS[ApiKey.API_VERSIONS][-1]
        answered: ApiVersionsResponse
        while True:
            read = partial(_read_versions, version=version)
            answered, read_as = await self._send(ApiKey.API_VERSIONS, version, request, read, timeout_s)
            if answered.error_code == ErrorCode.NONE:
                break
            version = self._older_version(answered, read_as, version)
        self.answered = answered
        self._frames.allow(MOST_BYTES)
        self.versions = {it.api_key: range(it.min_version, it.max_version + 1) for it in answered.api_keys}
        return self

    def _older_version(self, answered: ApiVersionsResponse, read_as: int, version: int) -> int:
        """Return the version to try next with a broker that does not know `version`. Raises LinkError."""
        older = [e.max_version for e in answered.api_keys if e.api_key == ApiKey.API_VERSIONS]
        older_version = min(older, default=0)
        if read_as == 0 and older_version < version and answered.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return max(0, older_version)
        error = f"error {answered.error_code}"
        raise LinkError(f"upstream broker {self.address} does not list its APIs: {error}")

    def _send(
        self,
        api_key: int,
        version: int,
        request: object,
        read: Callable[[bytes | bytearray], object] | None,
        timeout_s: float,
    ) -> Deferred[Any]:
        if self._why is not None:
            return fail(self._why)
        self._renew_login()
        correlation_id = self._next_correlation_id()
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        self._write(encode_request(header, request))
        if read is None:
            return succeed(None)
        return self._expect(correlation_id, ApiKey(api_key).title, read, timeout_s)

    def _renew_login(self) -> None:
        if self.session is not None and self.session.is_due(self._clock.seconds()):
            self._log_in_again(self.session)

    def _next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def _expect(
        self, correlation_id: int, title: str, read: Callable[[bytes | bytearray], object], timeout_s: float
    ) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        timer = self._clock.callLater(timeout_s, self._too_late, title, timeout_s)
        self._asked.append(_Asked(correlation_id, read, answer, timer))
        return answer

    def _write(self, frame: bytes) -> None:
        if self._held is None:
            self.transport.writeSequence(framed(frame))
        else:
            self._held.append(frame)

    def _log_in_again(self, session: Session) -> None:
        """Renew the login behind the requests under way. Later requests wait until it is done."""
        self._held = []
        self._go_on_with_login(session, session.begin, self._asked.append)

    def _go_on_with_login(
        self,
        session: Session,
        next_request: Callable[[], bytes | None],
        expect: Callable[[_Asked], object],
    ) -> None:
        """expect: queues a login request: the first one behind the requests under way, later ones before
        those held.
        """
        try:
            frame = next_request()
        except LoginFailed as failed:
            self.lose(Lost(str(failed), is_refused=True))
            return
        if frame is None:
            held, self._held = self._held or [], None
            for each in held:
                self._write(each)
            return
        self.transport.writeSequence(framed(frame))
        answer: Deferred[bytes] = Deferred()
        answer.addCallbacks(
            lambda found: self._go_on_with_login(
                session, lambda: session.answer(found, self._clock.seconds()), self._asked.appendleft
            ),
            lambda _: None,
        )
        timer = self._clock.callLater(TIMEOUT_S, self._too_late, "a login", TIMEOUT_S)
        expect(_Asked(session.correlation_id, bytes, answer, timer))

    def _receive(self, frame: bytes | bytearray) -> None:
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if not self._asked or self._asked[0].correlation_id != correlation_id:
            expected = self._asked[0].correlation_id if self._asked else "none"
            self._end(self._no_response(f"it has correlation id {correlation_id}, where {expected} was due"))
            return
        response = self._asked[0].read(frame)
        self._is_proven = self.answered is not None
        asked = self._asked.popleft()
        asked.timer.cancel()
        asked.answer.callback(response)

    def _no_response(self, why: str) -> LinkError:
        return LinkError(f"upstream broker {self.address} sent what is no response to a request: {why}")

    def _too_late(self, api: str, timeout_s: float) -> None:
        self._end(LinkError(f"upstream broker {self.address} has not answered {api} within {timeout_s:g} s"))

    def _end(self, why: LinkError) -> None:
        if self._why is not None:
            return
        self._why = why
        if not self.made.called:
            self.made.errback(why)
        asked, self._asked = self._asked, deque()
        watchers, self._watchers = self._watchers, []
        if self.transport is not None:
            self.transport.abortConnection()
        for each in asked:
            if each.timer.active():
                each.timer.cancel()
            each.answer.errback(why)
        for watcher in watchers:
            watcher(why)


def _read_versions(frame: bytes | bytearray, version: int) -> tuple[ApiVersionsResponse, int]:
    """Decode a response to ApiVersions; return it and its version. A broker that does not know `version`
    answers in v0.
    """
    error = int.from_bytes(frame[_ERROR_AT : _ERROR_AT + 2], signed=True)
    version = 0 if error == ErrorCode.UNSUPPORTED_VERSION else version
    response = decode_response(ApiKey.API_VERSIONS, version, bytes(frame))[1]
    assert isinstance(response, ApiVersionsResponse)
    return response, version


def connect(
    connector: Connector, address: Endpoint, *, client_id: str = "kshim", timeout_s: float = TIMEOUT_S
) -> Deferred[Link]:
    """Connect to a broker, and ask which versions it serves. Errbacks LinkError."""
    return Deferred.fromCoroutine(_connect(connector, address, client_id, timeout_s))


async def _connect(connector: Connector, address: Endpoint, client_id: str, timeout_s: float) -> Link:
    link = Link(connector.reactor, address, client_id)
    connector.connect(link, address, timeout_s)
    await link.made
    return await link.negotiate(timeout_s)
