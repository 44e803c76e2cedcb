"""kshim's login at a broker, on one connection: the requests to send, and what the broker's answers mean.

A broker may limit how long a login is valid (KIP-368). kshim renews it in time, by a new login between two
other requests. This module knows no connection, and time is an argument.

    frame = session.begin()
    while frame is not None: frame = session.answer(the broker's answer to the frame, now_s)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kshim.authentication.client import Exchange, NotOurServer
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from schemas.registry import decode_response, encode_request

R = TypeVar("R")

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
"""The first version that has the login's lifetime; Kafka 2.2 and later know it."""
RENEWED_AFTER: Final = 0.85
"""The part of the lifetime after which the login is renewed, as in Kafka's clients."""
MOST_ROUNDS: Final = 5
"""Limit of tokens in one login; SCRAM sends two."""


class LoginFailed(Exception):
    """str() is a predicate, e.g. "refuses the login by PLAIN: …"; callers put the broker's name before it."""


class Session:
    """The logins on one connection, one after the other."""

    def __init__(
        self,
        mechanism: str,
        new_exchange: Callable[[], Exchange],
        client_id: str = "kshim",
        prefix: str = "",
    ) -> None:
        """new_exchange: begins a login; raises LoginFailed if no credentials are available. prefix: stands
        before the names of properties in errors.
        """
        self._prefix = prefix
        self._mechanism = mechanism
        self._new_exchange = new_exchange
        self._client_id = client_id
        self._exchange: Exchange | None = None
        self._is_shaking_hands = False
        self._rounds = 0
        self._due_s: float | None = None
        self.correlation_id = 0
        """Correlation id of the request whose answer comes next."""

    def is_due(self, now_s: float) -> bool:
        """True if the login has to be renewed before the next request."""
        return self._due_s is not None and now_s >= self._due_s

    def begin(self) -> bytes:
        """Return the first request of a login. Raises LoginFailed."""
        self._exchange, self._is_shaking_hands, self._rounds = self._new_exchange(), True, 0
        self._due_s = None
        request = SaslHandshakeRequest(mechanism=self._mechanism)
        return self._request(ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION, request)

    def answer(self, frame: bytes, now_s: float) -> bytes | None:
        """Take the broker's answer; return the next request, or None if the login is done. Raises
        LoginFailed.
        """
        try:
            token = self._next(frame, now_s)
        except MalformedMessage as error:
            raise LoginFailed(f"answers the login with what cannot be read: {error}") from None
        except NotOurServer as error:
            raise LoginFailed(f"is not trusted, as {error}") from None
        if token is None:
            self._exchange = None
            return None
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise LoginFailed(f"does not end the login by {self._mechanism}")
        request = SaslAuthenticateRequest(auth_bytes=token)
        return self._request(ApiKey.SASL_AUTHENTICATE, AUTHENTICATE_VERSION, request)

    def _next(self, frame: bytes, now_s: float) -> bytes | None:
        assert self._exchange is not None
        if self._is_shaking_hands:
            self._is_shaking_hands = False
            self._check_mechanism(self._read(SaslHandshakeResponse, HANDSHAKE_VERSION, frame))
            return self._exchange.first()
        answered = self._read(SaslAuthenticateResponse, AUTHENTICATE_VERSION, frame)
        if answered.error_code != ErrorCode.NONE:
            why = answered.error_message or f"error {answered.error_code}"
            raise LoginFailed(f"refuses the login by {self._mechanism}: {why}")
        if answered.session_lifetime_ms > 0:
            self._due_s = now_s + answered.session_lifetime_ms / 1000 * RENEWED_AFTER
        return self._exchange.answer(answered.auth_bytes)

    def _check_mechanism(self, answered: SaslHandshakeResponse) -> None:
        if answered.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            has = ", ".join(answered.mechanisms) or "none"
            name = f"{self._prefix}sasl.mechanism"
            raise LoginFailed(f"does not take {self._mechanism} ({name}); it takes {has}")
        if answered.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise LoginFailed(f"takes no login at this listener ({self._prefix}security.protocol)")
        if answered.error_code != ErrorCode.NONE:
            raise LoginFailed(f"refuses {self._mechanism}: error {answered.error_code}")

    def _request(self, api_key: ApiKey, version: int, request: object) -> bytes:
        self.correlation_id += 1
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=self.correlation_id,
            client_id=self._client_id,
        )
        return encode_request(header, request)

    def _read(self, response_class: type[R], version: int, frame: bytes) -> R:
        api_key = definition(response_class).api_key
        assert api_key is not None
        correlation_id, response = decode_response(api_key, version, frame)
        assert isinstance(response, response_class)
        if correlation_id != self.correlation_id:
            raise LoginFailed(f"answers request {correlation_id}, where {self.correlation_id} was due")
        return response
