"""The regular expression by which ListTransactions filters transactional ids (KIP-1152), in linear time.

Apache Kafka matches with RE2/J, which was written after RE2; this is RE2's own Python package. It is imported
when a request first filters.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_BYTES = 8 << 20
"""The memory that one expression may take, for its compiled form and for the states it meets."""
MOST_INSTRUCTIONS = 10_000
"""Each character of an id may cost as many steps, so the longest id takes about a second, not a minute."""


class InvalidPattern(ValueError):
    """The pattern is no regular expression, or too large a one."""


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """A test whether a whole transactional id matches; without a pattern, or with an empty one, every id
    does.

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
        re2.purge()  # else it keeps the last 128 expressions, with all their memory
    if compiled.programsize > MOST_INSTRUCTIONS:
        raise InvalidPattern(f"more than {MOST_INSTRUCTIONS} instructions")
    return lambda text: compiled.fullmatch(text) is not None
