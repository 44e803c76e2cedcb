"""kshim's own link to the upstream: to the first broker that answers, replaced when it is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.storage.clock import after
from kshim.upstream.connector import Connector
from kshim.upstream.link import Link, LinkError, connect

logger = logging.getLogger(__name__)

CONNECT_S = 5.0
ANSWER_S = 10.0
SAYS_S = 1.0
"""A start that takes longer is explained in the log."""
MOST_NAMED = 5
AGAIN_S = 0.5
"""The pause before all addresses are tried again."""


class Contact:
    """Asks questions that any broker can answer."""

    def __init__(self, connector: Connector, bootstrap: Iterable[Endpoint]) -> None:
        self._connector = connector
        self._reactor = connector.reactor
        self._bootstrap = tuple(bootstrap)
        self.addresses: Callable[[], Iterable[Endpoint]] = lambda: ()
        """Returns the addresses of the known brokers, which are tried before the bootstrap addresses."""
        self._link: Link | None = None
        self._linking: list[Deferred[Link]] | None = None
        """Callers that wait for the link that is being made; None if none is."""
        self._is_stopped = False
        self._last = ""
        """Why the last attempt of `first` failed."""

    def ask(self, request: Any) -> Deferred[Any]:
        """Send a request. Fires with the response; errbacks LinkError."""
        return Deferred.fromCoroutine(self._ask(request))

    async def _ask(self, request: object) -> object:
        return await (await self.link()).ask(request, timeout_s=ANSWER_S)

    async def link(self) -> Link:
        """Return the link; make one if there is none. Raises LinkError if no address answers."""
        if self._link is not None and self._link.is_open:
            return self._link
        waits: Deferred[Link] = Deferred()
        if self._linking is None:
            self._linking = [waits]
            Deferred.fromCoroutine(self._make())
        else:
            self._linking.append(waits)
        return await waits

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Link]:
        """Connect to one broker. Errbacks LinkError."""
        return connect(self._connector, address, timeout_s=timeout_s)

    async def _make(self) -> None:
        """Try all addresses once, and pass the link or the error to all callers that wait."""
        result: Link | LinkError = LinkError("the server stops")
        for address in dict.fromkeys((*self.addresses(), *self._bootstrap)):
            if self._is_stopped:
                break
            try:
                result = self._link = await self.connect(address, CONNECT_S)
                break
            except LinkError as error:
                logger.debug("%s", error)
                if not (isinstance(result, LinkError) and result.is_refused):
                    result = error
        if self._is_stopped and isinstance(result, Link):
            result.close()
        waiting, self._linking = self._linking or [], None
        for each in waiting:
            if isinstance(result, Link):
                each.callback(result)
            else:
                each.errback(result)

    async def first(self, timeout_s: float) -> Link:
        """Return the first link. Raises LinkError after `timeout_s`, or as soon as a broker refuses kshim."""
        until_s = self._reactor.seconds() + timeout_s
        says = self._reactor.callLater(SAYS_S, self._say, until_s)
        try:
            while True:
                try:
                    return await self.link()
                except LinkError as error:
                    self._last = str(error)
                    if error.is_refused or self._is_stopped or self._reactor.seconds() + AGAIN_S >= until_s:
                        raise
                await after(self._reactor, AGAIN_S)
        finally:
            if says.active():
                says.cancel()

    def _say(self, until_s: float) -> None:
        """Log which addresses are tried, for people who would else wait without a word."""
        tried = ",".join(map(str, self._bootstrap[:MOST_NAMED]))
        more = f" and {len(self._bootstrap) - MOST_NAMED} more" if len(self._bootstrap) > MOST_NAMED else ""
        last = f"; {self._last}" if self._last else ", which has not answered yet"
        left_s = until_s - self._reactor.seconds()
        logger.warning("trying to reach the upstream %s%s for %.0f s more%s", tried, more, left_s, last)

    def stop(self) -> None:
        """Close the link, and make no other."""
        self._is_stopped = True
        if self._link is not None:
            self._link.close()
