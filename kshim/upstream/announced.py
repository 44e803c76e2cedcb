"""Refuses what was not announced to clients."""

from __future__ import annotations

from kshim.upstream.asked import Asked, refusal
from kshim.upstream.table import PASSED


def check_version(asked: Asked) -> None:
    """Raise Refused for a version that is not announced, even if the upstream would answer it."""
    versions = PASSED.get(asked.api_key)
    if versions is None or asked.api_version not in versions:
        raise refusal(asked, "is a version that was not announced")
