"""Matches names with regular expressions of clients, in linear time.

Names are transactional ids in ListTransactions (KIP-1152), and topics in subscriptions (KIP-848).

Apache Kafka uses RE2/J, a Java port of RE2. This module uses RE2's own Python package, and imports it when a
request first brings a pattern.
"""

from __future__ import annotations

MOST_BYTES = 8 << 20
"""The memory that one expression may take, in bytes, for its compiled form and for cached states."""
MOST_INSTRUCTIONS = 10_000
"""The largest compiled form. Each character of a name may cost one step for each instruction, so with this
limit the longest id takes about a second, not a minute.
"""
CALL_STEPS = 500
"""The cost of a call that matches nothing, in steps."""


class InvalidPattern(ValueError):
    """The pattern is not a regular expression, or is too large."""


class Matcher:
    """Tests whether a whole name matches a pattern."""

    def __init__(self, pattern: str) -> None:
        """Raises InvalidPattern."""
        import re2

        options = re2.Options()
        options.max_mem = MOST_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            (reason,) = error.args
            raise InvalidPattern(reason.decode(errors="replace")) from error
        finally:
            re2.purge()  # else it keeps the last 128 expressions, with all their memory
        if self._compiled.programsize > MOST_INSTRUCTIONS:
            raise InvalidPattern(f"more than {MOST_INSTRUCTIONS} instructions")

    def steps(self, name: str) -> int:
        """The most steps that matching a name may take, the cost of the call included."""
        return CALL_STEPS + len(name) * int(self._compiled.programsize)

    def matches(self, name: str) -> bool:
        return self._compiled.fullmatch(name) is not None
