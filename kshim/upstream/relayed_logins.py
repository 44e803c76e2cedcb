"""Clients' logins at the upstream: each token goes on to the broker at whose port its client has come.

The tokens travel on the client's passage, its own connection to that broker, so what it sends there
afterwards is its own. kshim speaks SaslAuthenticate to the broker, whatever version its client speaks,
because only this request tells an error from a token. kshim keeps no token. It reads the name that the client
claims, for the log and the page.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from kshim.authentication.claimed import claimed_name
from kshim.authentication.mechanism import Answer, AuthenticationFailed, Login, NotEnabled
from kshim.callers import Client, Refused
from kshim.configs.config import Config
from kshim.upstream.passage import Passage
from kshim.upstream.relay import Relay
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from schemas.registry import decode_response, encode_request

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
"""The first version that has the login's lifetime; Kafka 2.2 and later know it."""
UNNAMED: Final = "unnamed"
"""The name of a client whose token does not show it."""
SCRAM: Final = "SCRAM-"
_SERVER_SIGNATURE: Final = b"v="
"""How the last message of a server begins in SCRAM (RFC 5802)."""

R = TypeVar("R", SaslHandshakeResponse, SaslAuthenticateResponse)


class RelayedLogins:
    """Begins exchanges; see `kshim.network.gate.Relayed`."""

    def __init__(self, relays: Mapping[Client, Relay]) -> None:
        self._relays = relays

    async def __call__(self, mechanism: str, client: Client) -> RelayedLogin:
        """Begin an exchange with the broker. Raises NotEnabled, Refused."""
        relay = self._relays.get(client)
        if relay is None:
            raise Refused(f"{client.address}: has left before it authenticated", logging.DEBUG)
        login = RelayedLogin(mechanism, client, relay.passage)
        await login.begin()
        return login


def relayed_logins(config: Config, relays: Mapping[Client, Relay]) -> RelayedLogins | None:
    """Return what begins exchanges with the upstream; None if clients authenticate here."""
    return RelayedLogins(relays) if config.upstream_sasl_pass_through_enable else None


class RelayedLogin:
    """One exchange of tokens. Implements `Mechanism`."""

    def __init__(self, mechanism: str, client: Client, passage: Passage) -> None:
        self._mechanism = mechanism
        self._client = client
        self._passage = passage
        self.user = ""

    async def begin(self) -> None:
        """Choose the mechanism at the broker. Raises NotEnabled, Refused."""
        request = SaslHandshakeRequest(mechanism=self._mechanism)
        answered = await self._ask(HANDSHAKE_VERSION, request, SaslHandshakeResponse)
        if answered.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise NotEnabled(answered.mechanisms)
        if answered.error_code:
            raise self._refused(f"refuses SaslHandshake: error {answered.error_code}")

    async def step(self, token: bytes, now_ms: int) -> Answer:
        """See `Mechanism`. Raises AuthenticationFailed with the broker's message, Refused."""
        self.user = self.user or claimed_name(self._mechanism, token)
        request = SaslAuthenticateRequest(auth_bytes=token)
        answered = await self._ask(AUTHENTICATE_VERSION, request, SaslAuthenticateResponse)
        answer = bytes(answered.auth_bytes)
        if answered.error_code:
            message = answered.error_message or f"error {answered.error_code}"
            raise AuthenticationFailed(f"the upstream refuses it: {message}", message)
        if not _is_last(self._mechanism, answer):
            return Answer(answer)
        lifetime_ms = answered.session_lifetime_ms
        return Answer(answer, Login(self.user or UNNAMED, now_ms + lifetime_ms if lifetime_ms > 0 else None))

    async def _ask(self, version: int, request: object, response_class: type[R]) -> R:
        api_key = definition(response_class).api_key
        assert api_key is not None
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=0, client_id=self._client.client_id or None
        )
        frame: Any = await self._passage.ask(encode_request(header, request))
        try:
            _, response = decode_response(api_key, version, frame)
        except MalformedMessage as error:
            raise self._refused(f"answers the login with what cannot be read: {error}") from error
        assert isinstance(response, response_class)
        return response

    def _refused(self, why: str) -> Refused:
        return Refused(f"{self._client.address}: the upstream {why}", once=(self._mechanism, why))


def _is_last(mechanism: str, token: bytes) -> bool:
    """True if a broker's token ends an exchange: the client is authenticated.

    In SCRAM it proves that the broker has the client's keys. In other mechanisms the last one is empty; a
    token of OAUTHBEARER with an error is not.
    """
    return token.startswith(_SERVER_SIGNATURE) if mechanism.startswith(SCRAM) else not token
