"""The syntax of a server.properties file, which is Java's."""

from __future__ import annotations

import re
from collections.abc import Iterable


def parse_properties(text: str) -> dict[str, str]:
    """Parse Java's properties syntax: `key=value`, `key: value` or `key value`, # and ! for comments.

    A backslash joins lines and escapes, as in \\t and \\u00e9. Two escapes may form one character, as in
    UTF-16; a lone half of such a pair becomes U+FFFD. If a key comes twice, its last value counts.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        found = re.match(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
        assert found
        properties[_unescape(found[1])] = _unescape(found[2])
    return properties


def _logical_lines(text: str) -> Iterable[str]:
    """Lines that are neither comments nor blank; an odd number of backslashes at the end joins the next."""
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        pending += line
        if backslashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(escape, escape)

    units = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text, flags=re.DOTALL)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
