"""ssl.principal.mapping.rules: they map a certificate's name to the name of a principal (KIP-371).

    RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole name counts; DEFAULT leaves the name as it is. Patterns are
Java's, as far as Python's `re` supports them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))?\s*(,\s*|$)")
_REFERENCE = re.compile(r"\\(.)|\$\{(\w+)\}|\$(\d+)", re.DOTALL)


class Rule(NamedTuple):
    """One rule of ssl.principal.mapping.rules."""

    pattern: re.Pattern[str] | None = None
    """None for DEFAULT."""
    replacement: str = ""
    case: str = ""
    """L or U; empty leaves the letters as they are."""

    def apply(self, name: str) -> str | None:
        """Map a certificate's distinguished name to a principal's name; None if the rule does not match."""
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, found: re.Match[str]) -> str:
        def reference(part: re.Match[str]) -> str:
            escaped, named, numbered = part.groups()
            if escaped is not None:
                return str(escaped)
            if named is not None:
                return found[named] or ""
            return _numbered(found, numbered)

        return _REFERENCE.sub(reference, self.replacement)


def _numbered(found: re.Match[str], digits: str) -> str:
    """Replace a reference `$digits`: the longest number that names a group counts, and the other digits stay.

    Without such a group the reference stays as it is.
    """
    groups = len(found.groups())
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= groups:
            return (found[int(digits[:end])] or "") + digits[end:]
    return f"${digits}"


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Parse the text of the property. Raises ValueError, in words for the user."""
    rules, at, text = [], 0, text.strip()
    while at < len(text):
        found = _RULE.match(text, at)
        if not found:
            raise ValueError("expected RULE:pattern/replacement/[LU] or DEFAULT, comma-separated")
        if found[1]:
            rules.append(Rule())
        elif found[2] is not None:
            rules.append(Rule(_compiled(found[2]), found[3], found[4]))
        at = found.end()
    return tuple(rules)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!"))
    except re.error as error:
        raise ValueError(f"expected a regular expression, but {pattern}: {error}") from None


def mapped(rules: Sequence[Rule], name: str) -> str | None:
    """Map a certificate's name by the first rule that matches; None if no rule does."""
    return next((found for rule in rules if (found := rule.apply(name)) is not None), None)
