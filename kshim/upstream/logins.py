"""kshim's logins at the upstream, with its password or current token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, execute

from kshim.authentication.client import Exchange
from kshim.client.exchanges import new_exchange
from kshim.client.session import Session
from kshim.configs.upstream import PREFIX, LoginSettings
from kshim.upstream.token_endpoint import RenewedToken

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


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

    def become(self, other: Logins) -> None:
        """Take the credentials of another one, which has started, for all logins to come."""
        self.stop()
        self._settings, self._renewed = other._settings, other._renewed

    def new_session(self) -> Session:
        """Return the session for one connection."""
        return Session(self._settings.mechanism, self._new_exchange, prefix=PREFIX)

    def _new_exchange(self) -> Exchange:
        """Begin a login. Raises LoginFailed."""
        return new_exchange(self._settings, None if self._renewed is None else self._renewed.token())
