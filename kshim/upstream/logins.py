"""kshim's logins at the upstream, with its password or current token."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred, execute

from kshim.authentication.client import Exchange, OAuthBearer, Plain, Scram
from kshim.authentication.scram_credential import ScramMechanism
from kshim.configs.sasl import OAUTHBEARER, PLAIN
from kshim.configs.upstream import JAAS, LoginSettings
from kshim.configs.values import Secret
from kshim.upstream.session import LoginFailed, Session
from kshim.upstream.token_endpoint import RenewedToken

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


_EXTENSION: Final = ("unsecuredLoginExtension_", "extension_")
"""Prefixes of login module options sent as extensions: with an unsecured token, with any other."""


class Logins:
    """Begins logins, all with the same credentials."""

    def __init__(self, settings: LoginSettings, reactor: Reactor) -> None:
        self._settings = settings
        self._renewed = RenewedToken(settings, reactor) if settings.token_url else None

    def start(self) -> Deferred[None]:
        """Get a token, if one is needed. Errbacks LoginFailed."""
        return (
            execute(self._new_exchange).addCallback(lambda _: None)
            if self._renewed is None
            else self._renewed.start()
        )

    def stop(self) -> None:
        """Stop renewing the token."""
        if self._renewed is not None:
            self._renewed.stop()

    def new_session(self) -> Session:
        """Return the session for one connection."""
        return Session(self._settings.mechanism, self._new_exchange)

    def _new_exchange(self) -> Exchange:
        """Begin a login. Raises LoginFailed."""
        mechanism, options = self._settings.mechanism, self._settings.options
        if mechanism == OAUTHBEARER:
            return self._new_bearer(options)
        username, password = options["username"], options["password"]
        if mechanism == PLAIN:
            return Plain(username, password)
        by_token = options.get("tokenauth", "").lower() == "true"
        return Scram(ScramMechanism(mechanism), username, password, is_delegation_token=by_token)

    def _new_bearer(self, options: Mapping[str, Secret]) -> OAuthBearer:
        if self._renewed is not None:
            return OAuthBearer(self._renewed.token(), _named(options, _EXTENSION[1]))
        from kshim.authentication.unsecured_token import new_token

        try:
            token = new_token(options, time.time())
        except ValueError as error:
            raise LoginFailed(f"upstream.{JAAS}: {error}") from None
        return OAuthBearer(token, _named(options, _EXTENSION[0]))


def _named(options: Mapping[str, Secret], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in options.items() if name.startswith(prefix)}
