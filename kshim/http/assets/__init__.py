"""Files that are sent as they are."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from kshim.http.answers import Answer, Asked
from kshim.http.facts import Facts

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}


@cache
def _content(name: str) -> bytes:
    return files(__name__).joinpath(name).read_bytes()


async def asset(name: str, facts: Facts, asked: Asked) -> Answer:
    """The file `name`. It is read at the first request, and kept."""
    return Answer(_content(name), TYPES[name.rpartition(".")[2]], headers={"Cache-Control": "no-cache"})
