"""The settings of a client: the addresses where it begins, TLS, and its login."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kshim.client.exchanges import new_exchange
from kshim.client.faults import ClientError
from kshim.client.session import LoginFailed, Session
from kshim.client.token_endpoint import fetch_token
from kshim.configs.endpoint import Endpoint
from kshim.configs.tls import WrongTls
from kshim.configs.upstream import (
    BOOTSTRAP,
    PREFIX,
    LoginSettings,
    WrongUpstreamProperty,
    of_client,
    upstream_security,
)
from kshim.configs.values import Secret
from kshim.network.tls_context import new_client_context

CLIENT_ID = "client.id"
REQUEST_TIMEOUT = "request.timeout.ms"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of all connections of one client."""

    bootstrap: Sequence[Endpoint]
    client_id: str = "kshim"
    timeout_s: float = 30.0
    """Limit of each connection attempt, and of each wait for a response."""
    tls: ssl.SSLContext | None = None
    login: LoginSettings | None = None
    token: Secret | None = None
    """The token endpoint's answer, if the login needs one."""

    def new_session(self) -> Session | None:
        """Return the login for one connection; None if none is needed."""
        login = self.login
        if login is None:
            return None
        return Session(login.mechanism, lambda: new_exchange(login, self.token), self.client_id)


def client_settings(bootstrap: str, properties: Mapping[str, str]) -> ClientSettings:
    """Make settings from a client's properties, as in a client.properties file of Kafka's tools.

    Reads key stores, and gets a token if the login needs one. Properties that only concern a producer, a
    consumer or Java are ignored. Raises ClientError.
    """
    try:
        security = upstream_security(of_client(properties)[0])
        login = security.login
        return ClientSettings(
            bootstrap=endpoints(bootstrap),
            client_id=properties.get(CLIENT_ID, "kshim"),
            timeout_s=_timeout_s(properties.get(REQUEST_TIMEOUT, "30000")),
            tls=None if security.tls is None else new_client_context(security.tls),
            login=login,
            token=fetch_token(login).text if login is not None and login.token_url else None,
        )
    except (WrongUpstreamProperty, WrongTls, LoginFailed) as error:
        raise ClientError(str(error).replace(PREFIX, "")) from None


def endpoints(text: str) -> Sequence[Endpoint]:
    """Parse HOST:PORT,…. Raises ClientError."""
    found = []
    for each in text.split(","):
        try:
            endpoint = Endpoint.parse(each)
        except ValueError as error:
            raise ClientError(f"{BOOTSTRAP} {each.strip() or repr('')}: {error}") from None
        if not endpoint.port:
            raise ClientError(f"{BOOTSTRAP} {each.strip()}: expected HOST:PORT with a port from 1 to 65535")
        found.append(Endpoint(endpoint.host or "127.0.0.1", endpoint.port))
    return found


def _timeout_s(text: str) -> float:
    if not text.strip().isdigit() or not int(text):
        raise ClientError(f"{REQUEST_TIMEOUT}: expected a number of ms, 1 or more, not {text!r}")
    return int(text) / 1000
