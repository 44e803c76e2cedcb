"""Searches topics for those that regular expressions match, a bounded number of steps at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kshim.coordination.patterns import InvalidPattern, Matcher

MOST_STEPS = 2_000_000
"""How many steps of matching are done at a time before others get their turn: at most some ms of work."""


class Search:
    """A search for the matches of some expressions among topics, both as they were when it began."""

    def __init__(self, regexes: Collection[str], names: Collection[str], version: int, now_ms: int) -> None:
        """version: of the cluster's topics."""
        self.version = version
        self.began_ms = now_ms
        self.found: dict[str, set[str]] = {regex: set() for regex in regexes}
        """The matches so far by expression."""
        self.is_used = False
        """True once matches of an expression are written that a member still uses."""
        self.has_changes = False
        """True once matches are written that were others before."""
        self.faults: dict[str, str] = {}
        """The expressions that are not valid any more, each with the reason. They match nothing."""
        self.without_match: set[str] = set()
        """Expressions that were searched for the first time, and match nothing."""
        self.slices = 0
        """How many parts of the work are done."""
        self._work = self._match(names)

    def go_on(self) -> bool:
        """Do a part of the work; return True if that was the last."""
        self.slices += 1
        return next(self._work, True)

    def _match(self, names: Collection[str]) -> Iterator[bool]:
        left = MOST_STEPS
        for regex, found in self.found.items():
            try:
                matcher = Matcher(regex)
            except InvalidPattern as fault:
                self.faults[regex] = str(fault)
                continue
            for name in names:
                left -= matcher.steps(name)
                if matcher.matches(name):
                    found.add(name)
                if left <= 0:
                    yield False
                    left = MOST_STEPS


def fault_in(regex: str) -> str | None:
    """Why an expression is invalid; None if it is valid."""
    try:
        Matcher(regex)
    except ValueError as fault:
        return str(fault)
    return None
