"""Limits for single addresses: HOST:COUNT,HOST:COUNT, the form of max.connections.per.ip.overrides."""

from __future__ import annotations

import re

from kshim.configs import java

_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")


def per_ip(name: str, text: str) -> dict[str, int]:
    """Parse HOST:COUNT,HOST:COUNT. Returns counts by host. Raises ValueError, in Kafka's words.

    name: the property's name, for these words.
    """
    counts = {}
    for item in filter(None, map(str.strip, text.split(","))):
        host, colon, count = item.rpartition(":")
        if not colon:
            reason = f"begin 0, end -1, length {len(item)}"
            raise ValueError(f"Error parsing configuration property '{name}': {reason}")
        try:
            counts[host.strip()] = java.integer(count.strip(), java.INT_MAX)
        except ValueError:
            raise ValueError(f'For input string: "{count.strip()}"') from None
    wrong = [host for host in counts if not _HOST.fullmatch(host)]
    if wrong:
        raise ValueError(f"{name} contains invalid addresses : {','.join(wrong)}")
    return counts


def checked_per_ip(text: str) -> str:
    """Return `text` if `per_ip` can parse it. Raises ValueError, in words for the user."""
    try:
        per_ip("", text)
    except ValueError:
        raise ValueError("expected HOST:COUNT, several separated by commas") from None
    return text
