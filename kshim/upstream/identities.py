"""Connects to the upstream as its clients, with the credentials of `upstream.identities.file`.

Whoever comes to a listener of kshim by a certificate, or by a login there, has a principal. Its name leads to
the credentials of its connections to the upstream. A client whose name the file does not have gets none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, execute
from twisted.python.failure import Failure

from kshim.callers import Client, Refused
from kshim.callers.principal import ANONYMOUS, USER
from kshim.client.session import LoginFailed
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.properties_file import parse_properties
from kshim.configs.upstream import UpstreamSecurity, WrongUpstreamProperty
from kshim.configs.upstream_identities import FILE, identities, without_login
from kshim.upstream.connector import Connector
from kshim.upstream.lost import Lost, Target

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor

logger = logging.getLogger(__name__)


class Identities:
    """The clients' credentials, by the names of their principals."""

    def __init__(self, reactor: Reactor, config: Config) -> None:
        self._reactor = reactor
        self._config = config
        self._securities: dict[str, UpstreamSecurity] = {}
        self._connectors: dict[str, Connector] = {}
        """Those that have their credentials; none that waits for its first token."""

    @property
    def files(self) -> list[str]:
        """The files that are read: the table, and the stores that it names."""
        stores = [each.tls.keys for each in self._securities.values() if each.tls is not None]
        named = [store.location for store in stores if store is not None and store.location]
        return [self._config.upstream_identities_file, *named]

    def prepare(self) -> Deferred[None]:
        """Read the file. Errbacks WrongUpstreamProperty."""
        return self.use(self._config.given)

    def use(self, given: Mapping[str, str]) -> Deferred[None]:
        """Read the file, and use its credentials from now on. If they cannot be used, those before stay.
        Errbacks WrongUpstreamProperty. It does not wait for tokens: a client's connection does.

        given: the server's properties, of which a client's connections have all but the credentials.
        """
        return execute(self._use, given)

    def _use(self, given: Mapping[str, str]) -> None:
        found = identities(_read(self._config.upstream_identities_file), given)
        self._check_anonymous(found)
        checking = Connector(self._reactor)
        for name, security in found.items():
            _check_stores(checking, name, security)
        for name in self._connectors.keys() - found.keys():
            self._connectors.pop(name).stop()
        self._securities = found
        for name in found:
            Deferred.fromCoroutine(self._enter(name)).addErrback(_not_yet, name)

    def stop(self) -> None:
        """Stop renewing tokens."""
        for connector in self._connectors.values():
            connector.stop()

    def connect(self, target: Target, client: Client, address: Endpoint, timeout_s: float) -> None:
        """Begin to connect as this client; see `Connector`. Raises Refused for a client without an
        identity.
        """
        name, principal_type = client.principal.name, client.principal.principal_type
        if principal_type != USER or name not in self._securities:
            raise Refused(
                f"{client.named(client.client_id)}: {client.principal} is not in upstream.{FILE}",
                once=(FILE, client.principal),
            )
        Deferred.fromCoroutine(self._connect(target, name, address, timeout_s))

    # ---- inside

    async def _connect(self, target: Target, name: str, address: Endpoint, timeout_s: float) -> None:
        try:
            connector = self._connectors.get(name) or await self._enter(name)
        except (LoginFailed, WrongUpstreamProperty) as error:
            target.lose(Lost(str(error), is_refused=True))
            return
        connector.connect(target, address, timeout_s)

    async def _enter(self, name: str) -> Connector:
        """Return the connector that has these credentials from now on. Raises LoginFailed,
        WrongUpstreamProperty.
        """
        connector = self._connectors.get(name) or Connector(self._reactor)
        await connector.use(self._securities[name])
        found = self._connectors.setdefault(name, connector)
        if found is not connector:
            connector.stop()  # another client was faster
        return found

    def _check_anonymous(self, names: Mapping[str, object]) -> None:
        open_to_all = without_login(self._config.given, self._config.listener_configs)
        if open_to_all is not None and ANONYMOUS.name not in names:
            raise WrongUpstreamProperty(
                f"{FILE}: expected credentials of {ANONYMOUS.name}, too: clients of listener"
                f" {open_to_all.name} do not authenticate"
            )


def _not_yet(failure: Failure, name: str) -> None:
    failure.trap(LoginFailed, WrongUpstreamProperty)
    logger.warning("there is no login as %s at the upstream yet: %s", name, failure.getErrorMessage())


def _read(path: str) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongUpstreamProperty(f"{FILE}: cannot read {path}: {error}") from None


def _check_stores(connector: Connector, name: str, security: UpstreamSecurity) -> None:
    try:
        connector.check(security)
    except WrongUpstreamProperty as error:
        raise WrongUpstreamProperty(f"{FILE}: {name}: {error}") from None
