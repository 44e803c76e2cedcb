"""The regular expression by which ListTransactions filters transactional ids (KIP-1152), in linear time.

Apache Kafka matches with RE2/J; this is RE2, which RE2/J was written after, in its own Python package. It is
imported when somebody filters.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_BYTES = 8 << 20
"""What one expression may take while it is compiled, and for the states it meets."""
MOST_INSTRUCTIONS = 10_000
"""Each character of an id may cost as many steps; so the longest id takes about a second, not a minute."""


class InvalidPattern(ValueError):
    """What was sent is no regular expression, or too large a one."""


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a whole transactional id matches; without a pattern, or with an empty one, every id does.

    Raises InvalidPattern.
    """
    if not pattern:
        return lambda _: True
    import re2

    options = re2.Options()
    options.max_mem = MOST_BYTES
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidPattern(str(error)) from error
    finally:
        re2.purge()  # else it keeps the last 128, each with all its memory
    if compiled.programsize > MOST_INSTRUCTIONS:
        raise InvalidPattern(f"more than {MOST_INSTRUCTIONS} instructions")
    return lambda text: compiled.fullmatch(text) is not None
