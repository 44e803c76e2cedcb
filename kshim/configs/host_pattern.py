"""The names of brokers that share one port: a pattern such as b$(nodeId).kafka.example.com."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NODE_ID: Final = "$(nodeId)"
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*", re.IGNORECASE)
_MOST_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host name with the node id in it."""

    text: str

    def host(self, node_id: int) -> str:
        """Return a broker's name."""
        return self.text.replace(NODE_ID, str(node_id))

    def node_id(self, host: str) -> int | None:
        """Return the node id of the broker with this name; None for another name."""
        before, _, after = self.text.lower().partition(NODE_ID.lower())
        name = host.lower().removesuffix(".")
        digits = name.removeprefix(before).removesuffix(after)
        if not digits.isascii() or not digits.isdecimal() or len(digits) > _MOST_DIGITS:
            return None
        return int(digits) if name == self.host(int(digits)).lower() else None


def host_pattern(text: str) -> HostPattern | None:
    """Parse a pattern; None for the empty text. Raises ValueError, in words for the user."""
    if not text:
        return None
    if text.count(NODE_ID) != 1 or not _NAME.fullmatch(text.replace(NODE_ID, "0" * _MOST_DIGITS)):
        raise ValueError(f"expected a host name with {NODE_ID} in it, as in b{NODE_ID}.kafka.example.com")
    return HostPattern(text)
