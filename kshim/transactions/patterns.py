"""The regular expression by which ListTransactions filters transactional ids (KIP-1152)."""

from __future__ import annotations

import re
from collections.abc import Callable


class InvalidPattern(ValueError):
    """What was sent is no regular expression."""


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a whole transactional id matches; without a pattern, or with an empty one, every id does."""
    if not pattern:
        return lambda _: True
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error)) from error
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None
