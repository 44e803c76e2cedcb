"""The regular expression by which ListTransactions filters transactional ids (KIP-1152), in bounded time.

Kafka matches with RE2, whose time is bounded. Python's own matcher may take for ever on an expression that
somebody sends, so it is only asked to parse. Matching goes through the parsed expression with the set of all
positions at which it may stand: each part turns the positions where it may begin into those where it may end.
What RE2 does not know (references to groups, looking around) is no expression here either.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable
from functools import partial
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MOST_REPETITIONS = 1_000  # RE2's own limit
ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

Positions = frozenset[int]
Part = Callable[[str, Positions], Positions]
"""From a text and where a part of the expression may begin, to where it may end."""
Test = Callable[[str], bool]
"""Of one character."""


class InvalidPattern(ValueError):
    """What was sent is no regular expression."""


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a whole transactional id matches; without a pattern, or with an empty one, every id does.

    Raises InvalidPattern.
    """
    if not pattern:
        return lambda _: True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what another version of Python will read differently
            parsed = _parser.parse(pattern)
        part = _sequence(parsed, parsed.state.flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error)) from error
    return lambda text: len(text) in part(text, frozenset({0}))


# ---- parts


def _sequence(nodes: Iterable[tuple[Any, Any]], flags: int) -> Part:
    parts = [_part(code, argument, flags) for code, argument in nodes]

    def ends(text: str, begins: Positions) -> Positions:
        for part in parts:
            begins = part(text, begins)
        return begins

    return ends


def _part(code: Any, argument: Any, flags: int) -> Part:
    if code is op.BRANCH:
        branches = [_sequence(branch, flags) for branch in argument[1]]
        return lambda text, begins: frozenset().union(*(branch(text, begins) for branch in branches))
    if code is op.SUBPATTERN:
        _, added, removed, nodes = argument
        return _sequence(nodes, (flags | added) & ~removed)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, most, nodes = argument
        return _repeat(least, most, _sequence(nodes, flags))
    if code is op.AT:
        return _at(argument, flags)
    return partial(_one, _test(code, argument, flags))


def _one(test: Test, text: str, begins: Positions) -> Positions:
    return frozenset(at + 1 for at in begins if at < len(text) and test(text[at]))


def _repeat(least: int, most: int, part: Part) -> Part:
    bounded = most is not op.MAXREPEAT
    if least > MOST_REPETITIONS or (bounded and most > MOST_REPETITIONS):
        raise InvalidPattern(f"more than {MOST_REPETITIONS} repetitions")

    def ends(text: str, begins: Positions) -> Positions:
        for _ in range(least):
            begins, before = part(text, begins), begins
            if begins == before:
                break
        found, new = begins, begins
        for _ in range(most - least if bounded else len(text) + 1):
            new = part(text, new) - found
            if not new:
                break
            found |= new
        return found

    return ends


def _at(place: Any, flags: int) -> Part:
    lines = bool(flags & re.MULTILINE)

    def is_there(text: str, at: int) -> bool:
        if place is op.AT_BEGINNING:
            return at == 0 or (lines and text[at - 1] == "\n")
        if place is op.AT_END:
            return at == len(text) or (lines and text[at] == "\n")
        if place is op.AT_BEGINNING_STRING:
            return at == 0
        if place is op.AT_END_STRING:
            return at == len(text)
        word_before, word_behind = (
            char in ASCII_WORD for char in (text[at - 1 : at] or " ", text[at : at + 1] or " ")
        )
        return (word_before != word_behind) is (place is op.AT_BOUNDARY)

    return lambda text, begins: frozenset(at for at in begins if is_there(text, at))


# ---- one character

CATEGORIES: dict[Any, Test] = {
    op.CATEGORY_DIGIT: lambda char: char in "0123456789",
    op.CATEGORY_NOT_DIGIT: lambda char: char not in "0123456789",
    op.CATEGORY_SPACE: lambda char: char in " \t\n\r\f",
    op.CATEGORY_NOT_SPACE: lambda char: char not in " \t\n\r\f",
    op.CATEGORY_WORD: lambda char: char in ASCII_WORD,
    op.CATEGORY_NOT_WORD: lambda char: char not in ASCII_WORD,
}


def _test(code: Any, argument: Any, flags: int) -> Test:
    if code is op.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda char: char != "\n")
    if code is op.LITERAL:
        test: Test = chr(argument).__eq__
    elif code is op.NOT_LITERAL:
        return _not(_test(op.LITERAL, argument, flags))
    elif code is op.IN:
        return _among(argument, flags)
    elif code is op.RANGE:
        test = partial(_in_range, *argument)
    elif code is op.CATEGORY:
        return CATEGORIES[argument]
    else:
        raise InvalidPattern(f"{str(code).lower()} is not part of the language")
    return partial(_in_any_case, test) if flags & re.IGNORECASE else test


def _among(members: Collection[tuple[Any, Any]], flags: int) -> Test:
    negated = any(code is op.NEGATE for code, _ in members)
    tests = [_test(code, argument, flags) for code, argument in members if code is not op.NEGATE]
    found: Test = lambda char: any(test(char) for test in tests)  # noqa: E731
    return _not(found) if negated else found


def _not(test: Test) -> Test:
    return lambda char: not test(char)


def _in_range(low: int, high: int, char: str) -> bool:
    return low <= ord(char) <= high


def _in_any_case(test: Test, char: str) -> bool:
    return test(char) or test(char.lower()) or test(char.upper())
