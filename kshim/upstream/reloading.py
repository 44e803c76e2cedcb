"""Reads the settings of the connection to the upstream again when their files have changed: the file of
--upstream-config, the file with the clients' credentials, and the stores of keys and certificates that they
name. So new credentials and certificates need no restart. Another protocol or mechanism does.

Connections that are made from then on use the new settings, and so does a login that is renewed. If they
cannot be used, the former ones stay, and the next change is tried.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.client.session import LoginFailed
from kshim.configs.properties_file import parse_properties
from kshim.configs.upstream import (
    FILE,
    MECHANISM,
    PREFIX,
    PROTOCOL,
    UpstreamSecurity,
    WrongUpstreamProperty,
    of_client,
    upstream_security,
)
from kshim.storage.clock import Call, TimerClock

logger = logging.getLogger(__name__)

LOOK_S = 10.0

_Signature = dict[str, tuple[int, int, int] | None]
"""The inode, the size and the last change of each file; None for a missing file."""


class Connects(Protocol):
    """The part of the connector that takes new settings."""

    def use(self, security: UpstreamSecurity) -> Deferred[None]:
        """Use other settings from now on. Errbacks WrongUpstreamProperty, LoginFailed."""


class ReadsFiles(Protocol):
    """The clients' credentials, which are in files of their own."""

    @property
    def files(self) -> Sequence[str]:
        """The files to look at."""

    def use(self, given: Mapping[str, str]) -> Deferred[None]:
        """Read them again, and use them from now on. Errbacks WrongUpstreamProperty."""


class Reloading:
    """Looks at the files from `start` to `stop`."""

    def __init__(
        self,
        clock: TimerClock,
        given: Mapping[str, str],
        connector: Connects,
        identities: ReadsFiles | None = None,
    ) -> None:
        """given: the properties of the server that were set, those of the file among them. identities: the
        clients' credentials; None if all clients have kshim's.
        """
        self._clock = clock
        self._given = given
        self._connector = connector
        self._identities = identities
        self._file = given.get(PREFIX + FILE, "")
        self._of_file: Mapping[str, str] = {}
        """The properties of the file at the start."""
        self._security = upstream_security(given)
        self._seen = self._signature()
        self._timer: Call | None = None

    def prepare(self) -> None:
        """Read the file, once the clients' credentials were read. Raises WrongUpstreamProperty."""
        self._seen = {**self._signature(), **self._seen}
        if self._file:
            try:
                self._of_file = _read(self._file)
            except (OSError, ValueError) as error:
                raise WrongUpstreamProperty(f"{FILE}: cannot read {self._file}: {error}") from None

    def start(self) -> None:
        """Begin to look, if there is a file to look at."""
        if self._seen:
            self._timer = self._clock.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = self._clock.callLater(LOOK_S, self._look)
        if (signature := self._signature()) != self._seen:
            self._seen = signature
            Deferred.fromCoroutine(self._read_again()).addErrback(_log_fault)

    async def _read_again(self) -> None:
        try:
            current = self._current()
            security = upstream_security(current)
            self._check_kind(security)
            if self._identities is not None:
                await self._identities.use(current)
            await self._connector.use(security)
        except (OSError, UnicodeDecodeError, ValueError, LoginFailed, WrongUpstreamProperty) as error:
            logger.warning("the changed settings of the connection to the upstream are not used: %s", error)
            return
        self._security = security
        self._seen = self._signature()
        logger.info("the changed settings of the connection to the upstream are used from now on")

    def _check_kind(self, security: UpstreamSecurity) -> None:
        """Raise WrongUpstreamProperty for another protocol or mechanism. A file that is just being written
        must not make kshim go without TLS or a login.
        """
        for name, before, now in (
            (PROTOCOL, self._security.protocol, security.protocol),
            (MECHANISM, *(it.login and it.login.mechanism for it in (self._security, security))),
        ):
            if before != now:
                raise WrongUpstreamProperty(f"{name}: expected {before}; another one needs a restart")

    def _current(self) -> dict[str, str]:
        """Return the properties as they are now. What was not set by the file stays. Raises OSError."""
        if not self._file:
            return dict(self._given)
        own = {name: text for name, text in self._given.items() if self._of_file.get(name) != text}
        return {**_read(self._file), **own}

    def _signature(self) -> _Signature:
        tls = self._security.tls
        stores = () if tls is None else (tls.keys, tls.trusted)
        stored = [store.location for store in stores if store is not None and store.location]
        of_clients = () if self._identities is None else self._identities.files
        return {each: _of_file(each) for each in (self._file, *stored, *of_clients) if each}


def _read(path: str) -> dict[str, str]:
    """Return the properties of a client.properties file that kshim uses. Raises OSError, ValueError."""
    properties, _ = of_client(parse_properties(Path(path).read_text(encoding="utf-8")))
    return {name: text.strip() for name, text in properties.items()}


def _of_file(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _log_fault(failure: Failure) -> None:
    logger.error("internal error: %s", failure.getTraceback())
