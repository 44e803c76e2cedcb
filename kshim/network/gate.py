"""The gate of a listener with SASL: a client may only authenticate before it has done so.

Each connection begins with a gate, which answers in place of the server. The gate opens at the last token of
an exchange, and then steps aside, so that further requests cost nothing more. If a login is valid for a
limited time (connections.max.reauth.ms, or a token that expires), the gate stays and looks at each request.
It closes again for a client that does not authenticate in time (KIP-368).

In front of an upstream, that cluster may check the tokens: the gate then waits for its answers.

A failure is answered after connection.failed.authentication.delay.ms, and until then the client is not read
from. Bytes that no client would send close the connection at once. Both are as in Apache Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias

from kshim.authentication.mechanism import (
    AuthenticationFailed,
    Login,
    Mechanism,
    NotEnabled,
    Unreadable,
)
from kshim.authentication.rules import SaslRules
from kshim.callers import Client, Refused
from kshim.callers.mistake import Mistake
from kshim.callers.once import Once
from kshim.callers.principal import ANONYMOUS, USER, Principal
from kshim.configs.sasl import MAX_RECEIVE_BYTES
from kshim.storage.clock import Clock, after
from kshim.turns import Turn
from kshim.turns.promise import Promise, run, settled
from schemas.api_key import ApiKey, api_title
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from schemas.pieces import Pieces
from schemas.registry import decode_request, decode_request_header, encode_response

logger = logging.getLogger(__name__)

LEAST_BETWEEN_S: Final = 1.0
"""The shortest time between two authentications of a client, as in Kafka."""
MAX_ELEMENTS: Final = 2_000
MOST_SHOWN: Final = 100
"""Limit of a name's characters in the log."""
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2)
_NO_ERROR: Final = b"\0\0"
_ERROR: Final = slice(4, 6)
"""Where an answer to ApiVersions has its error: behind the correlation id."""

Reply = bytes | Pieces | None
Answered = Reply | Promise[Reply]
Relayed: TypeAlias = Callable[[str, Client], Awaitable[Mechanism]]
"""Begins an exchange of a client, given the mechanism's name, with a server beyond this one, which checks the
tokens. Raises NotEnabled, AuthenticationFailed, Refused.
"""


class Stage(Enum):
    """The progress of an exchange. Each value names the request that is awaited."""

    FIRST = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake, as ApiVersions is answered"
    TOKENS = "SaslAuthenticate with a token"
    BARE_TOKENS = "a token without a header, after SaslHandshake v0"
    WRONG_MECHANISM = "nothing: a second exchange must have the mechanism of the first"
    OPEN = "any request"


class Server(Protocol):
    """Answers the requests of a client that is let in; `answer` may be replaced at any time."""

    @property
    def answer(self) -> Callable[[bytes | bytearray, Client, Turn], Answered]: ...


@dataclass(slots=True)
class Logins:
    """The numbers of logins at all listeners of this process."""

    succeeded: int = 0
    again: int = 0
    """How many of those were on connections that had authenticated before."""
    failed: int = 0
    expired: int = 0
    """Connections that were closed because they did not authenticate again in time."""
    stalled: int = 0
    """Connections that were closed because they were idle and had not authenticated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """The rules and counters that the gates of one listener share."""

    rules: SaslRules
    clock: Clock
    now_ms: Callable[[], int]
    """Returns the time for tokens' expiry, in milliseconds since 1970."""
    once: Once
    logins: Logins
    relayed: Relayed | None = None
    """Begins the exchanges of mechanisms for which `rules` have no function."""

    @property
    def failure_delay_s(self) -> float:
        """How long the answer to a failure is delayed."""
        return self.rules.failure_delay_ms / 1000

    def limit(self, max_request_bytes: int) -> tuple[int, str]:
        """Return the largest request before a login, in bytes, and the property that sets it."""
        return min(max_request_bytes, self.rules.max_receive_bytes), MAX_RECEIVE_BYTES

    def idle(self, client: Client) -> None:
        """Note that a connection was closed because it was idle."""
        self.logins.stalled += client.principal == ANONYMOUS

    def begin(self, mechanism: str, client: Client) -> Mechanism | Awaitable[Mechanism]:
        """Begin an exchange by an enabled mechanism; see `Relayed`."""
        new = self.rules.mechanisms[mechanism]
        if new is not None:
            return new()
        assert self.relayed is not None
        return self.relayed(mechanism, client)

    def new_gate(self, server: Server, client: Client, opened: Callable[[bool], object]) -> Server:
        """Return the gate that answers a new client until it has authenticated."""
        return Gate(self, server, client, opened)


class Gate:
    """Answers one client until it has authenticated."""

    def __init__(
        self, context: GateContext, server: Server, client: Client, opened: Callable[[bool], object]
    ) -> None:
        """opened: called at each login, with True if further requests also come to the gate."""
        self._context = context
        self._server = server
        self._client = client
        self._opened = opened
        self._stage = Stage.FIRST
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._before: Principal | None = None  # in a further exchange: the client's principal before it
        self._expires_s: float | None = None  # when the login ends
        self._began_again_s: float | None = None

    def answer(self, frame: bytes | bytearray, client: Client, turn: Turn) -> Answered:
        """Return the reply to a request or a bare token. Raises Refused, or the promise fails with it."""
        if self._stage is Stage.OPEN:
            if not self._begins_again(frame):
                return self._server.answer(frame, client, turn)
            self._before = client.principal
        turn.is_alone = True
        return run(self._answer(frame, turn))

    async def _answer(self, frame: bytes | bytearray, turn: Turn) -> Reply:
        try:
            match self._stage:
                case Stage.BARE_TOKENS:
                    return await self._take_bare(bytes(frame))
                case Stage.TOKENS:
                    return await self._take(frame)
                case Stage.WRONG_MECHANISM:
                    raise AuthenticationFailed("it authenticates again with another mechanism")
                case _:
                    return await self._begin(frame, turn)
        except AuthenticationFailed as failure:
            self._failed(failure, None)
            raise await self._later(None) from failure
        except (MalformedMessage, Unreadable) as error:
            raise self._refused(str(error)) from error

    # ---- before the tokens

    async def _begin(self, frame: bytes | bytearray, turn: Turn) -> Reply:
        """Answer ApiVersions or SaslHandshake."""
        header, _ = decode_request_header(frame)
        awaits_versions = self._stage is Stage.FIRST
        if header.api_key == ApiKey.API_VERSIONS and awaits_versions:
            reply = await settled(self._server.answer(frame, self._client, turn))
            if isinstance(reply, bytes) and reply[_ERROR] == _NO_ERROR:
                self._stage = Stage.HANDSHAKE
            return reply
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            protocol = self._context.rules.protocol
            raise self._mistaken(Mistake.NO_LOGIN, header, api=_api(header), protocol=protocol)
        _, request = decode_request(frame, MAX_ELEMENTS)
        assert isinstance(request, SaslHandshakeRequest)
        return await self._choose(header, request.mechanism)

    async def _choose(self, header: RequestHeader, name: str) -> Reply:
        enabled = tuple(self._context.rules.mechanisms)
        if name not in enabled:
            return await self._not_enabled(header, name, enabled)
        if self._before is not None and name != self._mechanism_name:
            self._stage = Stage.WRONG_MECHANISM
        else:
            try:
                self._mechanism = await settled(self._context.begin(name, self._client))
            except NotEnabled as error:
                return await self._not_enabled(header, name, error.enabled)
            self._mechanism_name = name
            self._stage = Stage.TOKENS if header.api_version else Stage.BARE_TOKENS
        return _encoded(header, SaslHandshakeResponse(mechanisms=enabled))

    async def _not_enabled(self, header: RequestHeader, name: str, enabled: Sequence[str]) -> Reply:
        """Refuse a mechanism. Raises Refused after the delay."""
        details = {"mechanism": name[:40], "enabled": ", ".join(enabled)}
        self._log_mistake(Mistake.MECHANISM, header.client_id, **details)
        response = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=tuple(enabled)
        )
        raise await self._later(_encoded(header, response))

    # ---- tokens

    async def _take(self, frame: bytes | bytearray) -> Reply:
        """Answer a token in a SaslAuthenticate. Raises MalformedMessage, Unreadable, Refused."""
        header, request = decode_request(frame, MAX_ELEMENTS)
        if not isinstance(request, SaslAuthenticateRequest):
            self._log_mistake(Mistake.NO_TOKEN, header.client_id, api=_api(header))
            raise await self._later(_illegal_state(header, request))
        try:
            token, lifetime_ms = await self._step(bytes(request.auth_bytes), header.client_id)
        except AuthenticationFailed as failure:
            message = failure.message or self._wrong_credentials()
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            refusal = SaslAuthenticateResponse(error_code=code, error_message=message)
            self._failed(failure, header.client_id)
            raise await self._later(_encoded(header, refusal)) from failure
        return _encoded(header, SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))

    async def _take_bare(self, token: bytes) -> bytes:
        """Answer a bare token. Raises AuthenticationFailed if Kafka closes the connection after the delay,
        Refused if it closes it at once.
        """
        try:
            answer, _ = await self._step(token, None)
        except AuthenticationFailed as failure:
            if failure.message:
                raise
            self._failed(failure, None)
            raise self._silently() from failure
        return answer

    async def _step(self, token: bytes, client_id: str | None) -> tuple[bytes, int]:
        """Return the token that answers a token, and for how many milliseconds the login is valid (0: no
        limit, or no login yet).
        """
        assert self._mechanism is not None
        answer = await settled(self._mechanism.step(token, self._context.now_ms()))
        if answer.login is None:
            return answer.token, 0
        self._check_same(Principal(USER, answer.login.name))
        return answer.token, self._enter(answer.login, client_id)

    def _check_same(self, principal: Principal) -> None:
        before = self._before
        if before is not None and before != principal:
            change = f"{before.principal_type}.{before.name}: {principal.principal_type}.{principal.name}"
            message = f"Cannot change principals during re-authentication from {change}"
            raise AuthenticationFailed("it authenticates again as somebody else", message)

    def _enter(self, login: Login, client_id: str | None) -> int:
        context, client = self._context, self._client
        client.principal = Principal(USER, login.name)
        again = "again " if self._before else ""
        context.logins.succeeded += 1
        context.logins.again += self._before is not None
        logger.info(
            "%s authenticated %sas %s with %s at listener %s",
            client.named(client_id),
            again,
            str(client.principal)[:MOST_SHOWN],
            self._mechanism_name,
            context.rules.listener_name,
        )
        lifetime_ms = self._lifetime_ms(login)
        self._expires_s = None if lifetime_ms is None else context.clock.seconds() + lifetime_ms / 1000
        self._stage, self._mechanism = Stage.OPEN, None
        self._opened(lifetime_ms is not None)
        return lifetime_ms or 0

    def _lifetime_ms(self, login: Login) -> int | None:
        """Return for how many milliseconds a login is valid; None for ever."""
        bounds_ms = []
        if (max_reauth_ms := self._context.rules.max_reauth_ms.get(self._mechanism_name, 0)) > 0:
            bounds_ms.append(max_reauth_ms)
        if login.expires_ms is not None:
            bounds_ms.append(login.expires_ms - self._context.now_ms())
        return max(0, min(bounds_ms)) if bounds_ms else None

    # ---- inside

    def _begins_again(self, frame: bytes | bytearray) -> bool:
        """True if a client that has authenticated begins to do so again. Raises Refused if it is too late."""
        now_s = self._context.clock.seconds()
        if frame[:2] == _HANDSHAKE:
            began_s = self._began_again_s
            if began_s is None or now_s >= began_s + LEAST_BETWEEN_S:
                self._began_again_s = now_s
                return True
        assert self._expires_s is not None
        if now_s > self._expires_s:
            self._context.logins.expired += 1
            raise self._mistaken(Mistake.SESSION_EXPIRED, None)
        return False

    # ---- failures

    def _failed(self, failure: AuthenticationFailed, client_id: str | None) -> None:
        """Count a failure, and log which client has failed."""
        self._context.logins.failed += 1
        user = self._mechanism.user if self._mechanism else ""
        as_whom = f" as {user[:MOST_SHOWN]!r}" if user else ""
        details = {"mechanism": self._mechanism_name, "as_whom": as_whom, "why": failure}
        self._log_mistake(Mistake.CREDENTIALS, client_id, **details)

    async def _later(self, last_words: bytes | None) -> Refused:
        """Wait for the delay; return what closes the connection, with an answer if there is one."""
        refused = self._silently()
        refused.last_words = last_words
        delay_s = self._context.failure_delay_s
        if delay_s:
            await after(self._context.clock, delay_s)
        return refused

    def _silently(self) -> Refused:
        """Return a refusal that is not logged, because a line about it has been."""
        return Refused(f"{self._client.address}: it failed to authenticate", logging.DEBUG)

    def _wrong_credentials(self) -> str:
        attempt = "authentication" if self._before is None else "re-authentication"
        credentials = f"invalid credentials with SASL mechanism {self._mechanism_name}"
        return f"Authentication failed during {attempt} due to {credentials}"

    def _log_mistake(self, mistake: Mistake, client_id: str | None, **details: object) -> None:
        """Log a mistake, once for an address, a listener and a client id."""
        listener = self._context.rules.listener_name
        level = self._context.once.level((self._client.host, listener, mistake), client_id)
        line = mistake.line(listener=listener, **details)
        logger.log(level, "%s: %s", self._client.named(client_id), line)

    def _mistaken(self, mistake: Mistake, header: RequestHeader | None, **details: object) -> Refused:
        """Make the refusal of a request whose sender has made a mistake."""
        listener = self._context.rules.listener_name
        client_id = header.client_id if header else None
        sender = self._client.named(client_id) if header else str(self._client.address)
        line = f"{sender}: {mistake.line(listener=listener, **details)}"
        return Refused(line, once=(listener, mistake), names=client_id)

    def _refused(self, why: str) -> Refused:
        """Make the refusal of bytes that no authenticating client sends."""
        listener = self._context.rules.listener_name
        line = f"{self._client.address}: awaited {self._stage.value} at listener {listener}: {why}"
        return Refused(line, once=(listener, self._stage))


def _encoded(header: RequestHeader, response: object) -> bytes:
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _illegal_state(header: RequestHeader, request: object) -> bytes:
    """Answer a request that comes between tokens."""
    from kshim.answering.error_answers import answer

    key, version = ApiKey(header.api_key), header.api_version
    return _encoded(header, answer(key, version, request, ErrorCode.ILLEGAL_SASL_STATE))


def _api(header: RequestHeader) -> str:
    return api_title(header.api_key)
