"""Regular expressions: Apache Kafka 4.2's answers, with bounded time and memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.coordination.patterns import InvalidPattern, Matcher

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
        assert Matcher(pattern).matches(text) is (re.fullmatch(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("pay.*", "payments", True),
        ("pay", "payments", False),
        ("(?i)PAY.*", "payments", True),
        ("(?P<name>a)b", "ab", True),
        ("(?<name>a)b", "ab", True),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("(?m)a$\n^b", "a\nb", True),
        ("a{3}", "aa", False),
        ("a{,2}", "aa", False),
        (r"\w+", "ümlaut", False),
        (r"\pL+", "ümlaut", True),
        (r"\p{^Greek}", "α", False),
        ("[[:alpha:]]+", "ümlaut", False),
        (r"\Q(a)\E", "(a)", True),
        (r"\x{1F600}", "😀", True),
        (r"a\z", "a", True),
        (r"\B", "", True),
        (r"a\Bb", "ab", True),
        (r"a\B-", "a-", False),
        ("[^ü]", "ü", False),
        ("(?i)k", "\u212a", True),
        ("a\x00b", "a\x00b", True),
    ],
)
def test_some_expressions(pattern: str, text: str, matches: bool) -> None:
    assert Matcher(pattern).matches(text) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a)\1", "(?=a)a", "(?<!b)a", "(?>a)", "a*+", "a**", "a{1001}", "(a)(?(1)b|c)", "a{2,1}", "[z-a]"),
        *(r"a\Z", r"\p{Foo}", "[[:foo:]]", "(?x)a", "(?#c)a", r"\u0061", r"[\Qa\E]", "a)", "[", "*", r"a\E("),
    ],
)
def test_what_kafka_does_not_know_either(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        Matcher(pattern)


@pytest.mark.parametrize("pattern", [r"\pL{100}", ".{1000}" * 2, "((a{30}){30}){2}", r"\pL{999}" * 100])
def test_an_expression_may_be_too_large(pattern: str) -> None:
    """docs/differences.md has the limit."""
    with pytest.raises(InvalidPattern):
        Matcher(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(a*)*b", "(a|aa)+b", "((a?){30}){30}b", "(.*)*(.*)*b", "((((.?){9}){9}){9})*b"],
)
def test_no_expression_takes_for_ever(pattern: str) -> None:
    began = time.process_time()
    assert not Matcher(pattern).matches("a" * 32_000)
    assert time.process_time() - began < 10


def test_nothing_is_kept_of_an_expression() -> None:
    """Many expressions with many states, one after the other, take no more memory than one."""
    code = """
import random, resource
from kshim.coordination.patterns import Matcher
text = "".join(random.Random(0).choices("ab", k=4000))
def peak_mb(number):
    assert not Matcher(f"(?:a|b)*a.{{900}}c{number}").matches(text)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
peaks_mb = [peak_mb(number) for number in range(40)]
print(peaks_mb[-1] - peaks_mb[0])
"""
    python = [sys.executable, "-c", code]
    done = subprocess.run(python, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 40
