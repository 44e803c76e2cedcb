"""Regular expressions: what Python's own matcher finds, but in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.transactions.patterns import InvalidPattern, matcher

PARTS = st.recursive(
    st.sampled_from(
        [*"ab.", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", r"\s", r"\W", r"\b", "^", "$", "", r"\."]
    ),
    lambda parts: st.one_of(
        st.builds("({})".format, parts),
        st.builds("(?:{}){}".format, parts, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{2,}"])),
        st.builds("{}|{}".format, parts, parts),
        st.builds("{}{}".format, parts, parts),
        st.builds("(?i:{})".format, parts),
    ),
    max_leaves=6,
)
TEXTS = st.text("abAB1. -", max_size=6)


@given(PARTS, TEXTS)
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    if pattern:
        assert matcher(pattern)(text) is (re.fullmatch(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("pay.*", "payments", True),
        ("pay", "payments", False),
        ("(?i)PAY.*", "payments", True),
        ("(?P<name>a)b", "ab", True),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("(?m)a$\n^b", "a\nb", True),
        ("a{3}", "aa", False),
        (r"\w+", "ümlaut", False),
        (r"\B", "", True),  # as in RE2; Python says so only since 3.14
        (r"a\Bb", "ab", True),
        (r"a\B-", "a-", False),
        ("[^ü]", "ü", False),
    ],
)
def test_some_expressions(pattern: str, text: str, matches: bool) -> None:
    assert matcher(pattern)(text) is matches


@pytest.mark.parametrize("pattern", [None, ""])
def test_without_a_pattern_every_id_matches(pattern: str | None) -> None:
    assert matcher(pattern)("anything")


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", "(?=a)a", "(?<!b)a", "(?>a)", "a*+", "a{1001}", "(a)(?(1)b|c)"]
)
def test_what_kafka_does_not_know_either(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        matcher(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(a|aa)+b", "((a?){30}){30}b", "(.*)*(.*)*b"]
)
def test_no_expression_takes_for_ever(pattern: str) -> None:
    assert not matcher(pattern)("a" * 200)
