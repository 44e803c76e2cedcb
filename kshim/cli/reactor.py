"""Import Twisted without what it imports for uses that nobody has here.

It asks for OpenSSL, to be able to speak TLS, and for http.cookiejar, to name it; with these come urllib, http
and email. Together that is up to a fifth of the time that a start takes, and of its memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def import_reactor() -> Any:
    """The global reactor; with it comes nearly all of Twisted that a server needs."""
    with _standing_in({"OpenSSL": None, "http.cookiejar": ModuleType("http.cookiejar")}):
        from twisted.internet import reactor
    return reactor


@contextmanager
def _standing_in(stand_ins: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Meanwhile these are what is imported by those names, unless they are here already. None: nothing is."""
    absent = [name for name in stand_ins if name not in sys.modules]
    for name in absent:
        sys.modules[name] = stand_ins[name]  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
