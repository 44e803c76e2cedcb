"""Makes text from clients safe to print: names of groups and members, reasons, client ids."""

from __future__ import annotations

import re

MOST_CHARACTERS = 4_000
"""Most characters of one line. A member's name alone may have 32,767."""
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that end a line, control a terminal, or reverse the direction of text."""


def on_one_line(text: str, most: int = MOST_CHARACTERS) -> str:
    """Cut `text` to `most` characters, and escape its control characters, as in \\x1b or \\u202e."""
    more = len(text) - most
    if more > 0:
        text = text[:most]
    if CONTROLS.search(text):
        text = CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
    return f"{text}… and {more} more characters" if more > 0 else text
