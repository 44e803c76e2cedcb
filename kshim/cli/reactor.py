"""Imports Twisted's reactor without modules that kshim does not use.

Twisted imports OpenSSL for TLS, http.cookiejar only to name it, and asyncio for its futures. These import
urllib, http, email and ssl. Together they take up to a third of the start-up time, and of the memory after
the start. The construct library imports pdb for its debugger, and for its compiler hashlib,
which loads OpenSSL. kshim imports hashlib in the functions that hash.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


def import_reactor() -> Any:
    """Return the global reactor. This imports nearly all of Twisted and construct that the server needs."""
    with without_unused():
        from twisted.internet import reactor

        import_module("schemas.primitives")
    return reactor


def without_unused() -> AbstractContextManager[None]:
    """Make imports of the modules that kshim does not use give stand-ins, within the block."""
    return _standing_in(
        {
            "OpenSSL": None,
            "http.cookiejar": ModuleType("http.cookiejar"),
            "hashlib": ModuleType("hashlib"),
            "pdb": ModuleType("pdb"),
            "asyncio": _Asyncio("asyncio"),
        }
    )


class _Asyncio(ModuleType):
    """Stands in for asyncio in `twisted.internet.defer`. All names except `Future` are taken from asyncio."""

    iscoroutine = staticmethod(inspect.iscoroutine)
    AbstractEventLoop = type("AbstractEventLoop", (), {})
    Future = type("Future", (), {})
    """Used only by Deferreds that become futures; kshim has none."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get("asyncio") is self:
            del sys.modules["asyncio"]
        return getattr(import_module("asyncio"), name)


@contextmanager
def _standing_in(stand_ins: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Make the import of a name give its stand-in, or ImportError for None, within the block.

    Modules that are already imported stay unchanged.
    """
    absent = [name for name in stand_ins if name not in sys.modules]
    for name in absent:
        sys.modules[name] = stand_ins[name]  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in absent:
            if sys.modules[name] is stand_ins[name]:
                del sys.modules[name]
