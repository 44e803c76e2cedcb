"""A connection to one broker: sends requests, and waits for their responses in the order of the requests.

    connection = Connection(address, settings)
    response = connection.ask(MetadataRequest(topics=None))

Each request has the newest version that the broker and `schemas` both know, up to `newest`. TLS and the login
come first, and a login whose time is over is renewed between two requests.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kshim import __version__
from kshim.client.faults import ClientError, Unanswered, Unreachable
from kshim.client.session import LoginFailed, Session
from kshim.client.settings import ClientSettings
from kshim.client.tls_faults import tls_fault
from kshim.configs.endpoint import Endpoint
from kshim.network.frames import FrameError, Frames, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.registry import VERSIONS, decode_response, encode_request

MOST_BYTES: Final = 512 * 1024 * 1024
"""Limit of a response; a Fetch asks for far less."""
MOST_BYTES_AT_FIRST: Final = 1024 * 1024
"""Limit of a response before the broker is known. A larger size belongs to another protocol."""
RECEIVE_BYTES: Final = 256 * 1024
NEWEST: Final[Mapping[ApiKey, int]] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.FIND_COORDINATOR: 3,
}
"""The last versions that name topics by their names, and that ask about one key. Other APIs have no limit."""
_ERROR_AT: Final = 4
"""Where ApiVersions responses of all versions have their error: behind the correlation id."""
_ENDED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
_TLS_RECORD: Final = (b"\x15\x03", b"\x16\x03")


class _Asked(NamedTuple):
    api_key: ApiKey
    version: int
    correlation_id: int


class Connection:
    """Open from its construction until `close`."""

    def __init__(self, address: Endpoint, settings: ClientSettings) -> None:
        """Connect, log in, and ask for versions. Raises Unreachable, and ClientError if trying again is of no
        use.
        """
        self.address = address
        self.versions: dict[int, range] = {}
        """The versions that the broker serves, by API key."""
        self._settings = settings
        self._frames = Frames(MOST_BYTES_AT_FIRST)
        self._asked: deque[_Asked] = deque()
        self._correlation_id = 0
        self._is_proven = False
        self._has_answered = False
        """True after an answer other than that to ApiVersions, which a listener gives before a login, too."""
        self._session: Session | None = None
        self._socket = self._connect()
        try:
            self._session = settings.new_session()
            self._log_in()
            self._negotiate()
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return f"broker {self.address}"

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def fileno(self) -> int:
        """The socket, for select."""
        return self._socket.fileno()

    @property
    def under_way(self) -> int:
        """The number of requests that wait for their response."""
        return len(self._asked)

    @property
    def has_received(self) -> bool:
        """True if bytes may be waiting that select does not see."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    # ---- requests

    def ask(self, request: object, *, timeout_s: float | None = None) -> Any:
        """Send a request and wait for its response; no other may be under way. Raises ClientError."""
        assert not self._asked, "the responses before this one were not read"
        self.send(request)
        return self.receive(timeout_s)

    def send(self, request: object, *, has_response: bool = True) -> None:
        """Send a request. Read its response with `receive`. Raises ClientError.

        has_response: False for a Produce with acks=0.
        """
        if self._session is not None and not self._asked and self._session.is_due(time.monotonic()):
            self._log_in()
        api_key = definition(type(request)).api_key
        assert api_key is not None
        self._send(ApiKey(api_key), self.version(ApiKey(api_key)), request, has_response=has_response)

    def receive(self, timeout_s: float | None = None) -> Any:
        """Wait for the next response. Raises ClientError."""
        asked = self._asked.popleft()
        frame = self._frame(asked.api_key.title, timeout_s)
        try:
            correlation_id, response = decode_response(asked.api_key, asked.version, frame)
        except MalformedMessage as error:
            raise self._no_response(str(error)) from None
        if correlation_id != asked.correlation_id:
            raise self._no_response(f"it answers request {correlation_id}, not {asked.correlation_id}")
        self._has_answered = True
        return response

    def serves(self, api_key: ApiKey) -> bool:
        """True if the broker serves an API in a version that kshim knows."""
        return self._version(api_key) is not None

    def version(self, api_key: ApiKey) -> int:
        """Return the version in which requests are sent. Raises ClientError if there is none."""
        version = self._version(api_key)
        if version is None:
            raise ClientError(f"{self} serves no version of {api_key.title} that kshim knows")
        return version

    def _version(self, api_key: ApiKey) -> int | None:
        ours, theirs = VERSIONS[api_key], self.versions.get(api_key, range(0))
        version = min(ours.stop, theirs.stop, NEWEST.get(api_key, 32767) + 1) - 1
        return version if version in ours and version in theirs else None

    # ---- inside

    def _connect(self) -> socket.socket:
        address, timeout_s = self.address, self._settings.timeout_s
        try:
            plain = socket.create_connection((address.host, address.port), timeout_s)
        except OSError as error:
            raise Unreachable(f"{self} cannot be reached: {_words(error)}") from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._settings.tls is None:
            return plain
        try:
            return self._settings.tls.wrap_socket(plain, server_hostname=address.host)
        except (*_ENDED, ConnectionError, TimeoutError):
            plain.close()
            why = "does not go on with TLS: is security.protocol right?"
            raise ClientError(f"{self} {why}") from None
        except ssl.SSLError as error:
            plain.close()
            raise ClientError(f"{self} {tls_fault(error)}") from None

    def _log_in(self) -> None:
        session = self._session
        if session is None:
            return
        try:
            request: bytes | None = session.begin()
            while request is not None:
                self._write(request)
                request = session.answer(bytes(self._frame("the login", None)), time.monotonic())
        except LoginFailed as failed:
            raise ClientError(f"{self} {failed}") from None

    def _negotiate(self) -> None:
        request = ApiVersionsRequest(client_software_name="kshim", client_software_version=__version__)
        version = VERSIONS[ApiKey.API_VERSIONS][-1]
        while True:
            self._send(ApiKey.API_VERSIONS, version, request)
            self._asked.popleft()
            answered, read_as = self._read_versions(version)
            if answered.error_code == ErrorCode.NONE:
                break
            older = [e.max_version for e in answered.api_keys if e.api_key == ApiKey.API_VERSIONS]
            version, before = max(0, min(older, default=0)), version
            if answered.error_code != ErrorCode.UNSUPPORTED_VERSION or read_as or version >= before:
                raise ClientError(f"{self} does not list its APIs: error {answered.error_code}")
        self._is_proven = True
        self._frames.allow(MOST_BYTES)
        self.versions = {it.api_key: range(it.min_version, it.max_version + 1) for it in answered.api_keys}

    def _read_versions(self, version: int) -> tuple[ApiVersionsResponse, int]:
        """Read a response to ApiVersions; return it and its version. A broker that does not know `version`
        answers in v0.
        """
        frame = self._frame("ApiVersions", None)
        error = int.from_bytes(frame[_ERROR_AT : _ERROR_AT + 2], signed=True)
        version = 0 if error == ErrorCode.UNSUPPORTED_VERSION else version
        try:
            response = decode_response(ApiKey.API_VERSIONS, version, bytes(frame))[1]
        except MalformedMessage as malformed:
            raise self._no_response(str(malformed)) from None
        assert isinstance(response, ApiVersionsResponse)
        return response, version

    def _send(self, api_key: ApiKey, version: int, request: object, *, has_response: bool = True) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._settings.client_id,
        )
        try:
            frame = encode_request(header, request)
        except ValueError as error:
            raise ClientError(f"{api_key.title} v{version} cannot be written: {error}") from None
        self._write(frame)
        if has_response:
            self._asked.append(_Asked(api_key, version, self._correlation_id))

    def _write(self, frame: bytes) -> None:
        try:
            self._socket.settimeout(self._settings.timeout_s)
            self._socket.sendall(b"".join(framed(frame)))
        except OSError as error:
            raise self._lost(error) from None

    def _frame(self, awaited: str, timeout_s: float | None) -> bytes:
        timeout_s = self._settings.timeout_s if timeout_s is None else timeout_s
        end_s = time.monotonic() + timeout_s
        try:
            while (frame := self._frames.next_frame()) is None:
                self._socket.settimeout(max(end_s - time.monotonic(), 0.001))
                data = self._socket.recv(RECEIVE_BYTES)
                if not data:
                    raise self._lost(None)
                self._frames.receive(data)
        except FrameError as error:
            if error.start.startswith(_TLS_RECORD):
                raise ClientError(f"{self} speaks TLS at this port (security.protocol)") from None
            raise self._no_response(f"it begins with {error.start!r}") from None
        except TimeoutError:
            raise Unreachable(f"{self} has not answered {awaited} within {timeout_s:g} s") from None
        except OSError as error:
            raise self._lost(error) from None
        return bytes(frame)

    def _lost(self, error: OSError | None) -> ClientError:
        """Return the error for a connection that was lost."""
        if isinstance(error, TimeoutError):
            return Unreachable(f"{self} does not read what is sent to it")
        if isinstance(error, ssl.SSLError) and not isinstance(error, _ENDED):
            return ClientError(f"{self} {tls_fault(error)}")
        if not self._has_answered:
            fault = Unanswered if self._is_proven else ClientError
            return fault(f"{self} closed the connection without an answer: is security.protocol right?")
        return Unreachable(f"{self} closed the connection{'' if error is None else f': {_words(error)}'}")

    def _no_response(self, why: str) -> ClientError:
        return ClientError(f"{self} does not speak Kafka's protocol: {why}")


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror) or error.errno is None:
        return str(error.strerror or error)
    return os.strerror(error.errno)
