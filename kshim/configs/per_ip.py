"""Limits for single addresses, HOST:COUNT,HOST:COUNT, as max.connections.per.ip.overrides has them."""

from __future__ import annotations

import re

from kshim.configs import java

INT_MAX = 2**31 - 1
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")


def per_ip(name: str, text: str) -> dict[str, int]:
    """Count by host. Raises ValueError, in Kafka's words; `name` is the property."""
    counts = {}
    for item in filter(None, map(str.strip, text.split(","))):
        host, colon, count = item.rpartition(":")
        if not colon:
            reason = f"begin 0, end -1, length {len(item)}"
            raise ValueError(f"Error parsing configuration property '{name}': {reason}")
        try:
            counts[host.strip()] = java.integer(count.strip(), INT_MAX)
        except ValueError:
            raise ValueError(f'For input string: "{count.strip()}"') from None
    wrong = [host for host in counts if not _HOST.fullmatch(host)]
    if wrong:
        raise ValueError(f"{name} contains invalid addresses : {','.join(wrong)}")
    return counts


def checked_per_ip(text: str) -> str:
    """The text, for the parser of a property. Raises ValueError."""
    try:
        per_ip("", text)
    except ValueError:
        raise ValueError("expected HOST:COUNT, several separated by commas") from None
    return text
