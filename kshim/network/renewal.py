"""Reads key stores and trust stores again when their files have changed, so that new certificates need no
restart.

A file that is being written may be unreadable. The old certificate then stays in use, and the next look reads
the rest.
"""

from __future__ import annotations

import logging
from pathlib import Path

from kshim.configs.tls import TlsSettings, WrongTls
from kshim.network.tls import Tls
from kshim.storage.clock import Call, Clock

logger = logging.getLogger(__name__)

LOOK_S = 10.0

_Signature = tuple[tuple[int, int, int] | None, ...]
"""The inode, the size and the last change of each file; None for a missing file."""


class Renewal:
    """Looks at the files of listeners, from the first `watch` to `stop`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[Tls, _Signature] = {}
        self._timer: Call | None = None

    def watch(self, tls: Tls) -> None:
        """Look at a listener's files from now on."""
        self._seen[tls] = _signature(tls.settings)
        if self._timer is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)

    def forget(self, tls: Tls) -> None:
        """Look at a listener's files no more."""
        self._seen.pop(tls, None)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = self._clock.callLater(LOOK_S, self._look)
        for tls, seen in self._seen.items():
            signature = _signature(tls.settings)
            if signature != seen:
                self._seen[tls] = signature
                _read_again(tls)


def _read_again(tls: Tls) -> None:
    name = tls.settings.listener_name
    try:
        tls.use(tls.settings)
    except WrongTls as error:
        logger.warning("listener %s: it keeps its old certificates: %s", name, error)
    else:
        logger.info("listener %s: it has read its changed certificates", name)


def _signature(settings: TlsSettings) -> _Signature:
    stores = (settings.keys, settings.trusted)
    return tuple(_of_file(store.location) for store in stores if store is not None and store.location)


def _of_file(location: str) -> tuple[int, int, int] | None:
    try:
        found = Path(location).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
