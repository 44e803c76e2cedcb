"""The regular expression by which ListTransactions filters transactional ids (KIP-1152), in linear time.

Apache Kafka matches with RE2/J, which was written after RE2; this is RE2's own Python package. It is imported
when a request first filters.
"""

from __future__ import annotations

MOST_BYTES = 8 << 20
"""The memory that one expression may take, for its compiled form and for the states it meets."""
MOST_INSTRUCTIONS = 10_000
"""Each character of an id may cost as many steps, so the longest id takes about a second, not a minute."""
CALL_STEPS = 500
"""A call without a match takes as long as so many steps."""


class InvalidPattern(ValueError):
    """The pattern is no regular expression, or too large a one."""


class Matcher:
    """Tests whether a whole transactional id matches a pattern."""

    def __init__(self, pattern: str) -> None:
        """Raises InvalidPattern."""
        import re2

        options = re2.Options()
        options.max_mem = MOST_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            raise InvalidPattern(str(error)) from error
        finally:
            re2.purge()  # else it keeps the last 128 expressions, with all their memory
        if self._compiled.programsize > MOST_INSTRUCTIONS:
            raise InvalidPattern(f"more than {MOST_INSTRUCTIONS} instructions")

    def steps(self, transactional_id: str) -> int:
        """How many steps it may take to match an id, together with what the call costs."""
        return CALL_STEPS + len(transactional_id) * int(self._compiled.programsize)

    def matches(self, transactional_id: str) -> bool:
        return self._compiled.fullmatch(transactional_id) is not None
