"""Parses and prints values of configs as Java does, because a client may send any text that Java can parse.

Parsing takes time linear in the length of the text, which may be some 32 KB.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal

SHORT_MAX = 2**15 - 1
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_TRIMMED = "".join(map(chr, range(0x21)))
_WHITESPACE = " \t\n\x0b\f\r"  # \s in Java's regular expressions
_INTEGER = re.compile(r"[+-]?((?:(?![\U00010000-\U0010ffff])\d)+)")  # a char of Java has 16 bits
_SPECIAL = re.compile(r"[+-]?(NaN|Infinity)")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(
    r"(?P<sign>[+-]?)0[xX](?P<whole>[0-9a-fA-F]*)(?:\.(?P<fraction>[0-9a-fA-F]*))?"
    r"[pP](?P<exponent>[+-]?[0-9]+)[fFdD]?"
)
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?[0-9]+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[+-]?[0-9]+)H)?(?:(?P<minutes>[+-]?[0-9]+)M)?"
    r"(?:(?P<seconds>[+-]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_MAX_EXPONENT = 1 << 20
"""More than every exponent of a double. Larger exponents are cut to it."""


def trim(text: str) -> str:
    """`String.trim`: remove control characters and spaces at both ends."""
    return text.strip(_TRIMMED)


def split(text: str) -> list[str]:
    """`String.split(",")`: drop empty items at the end; a text without commas is one item."""
    if "," not in text:
        return [text]
    found = text.split(",")
    while found and not found[-1]:
        found.pop()
    return found


def items(text: str) -> list[str]:
    """The items of a list; the empty text has none."""
    return [item.strip(_WHITESPACE) for item in text.split(",")] if text else []


def boolean(text: str) -> bool:
    """Parse true or false. Java compares in upper case, so "falſe" is false. Raises ValueError."""
    if text.upper() not in ("TRUE", "FALSE"):
        raise ValueError(text)
    return text.upper() == "TRUE"


def integer(text: str, limit: int) -> int:
    """`Integer.parseInt`, `Long.parseLong` and the like: digits of any script, from -limit - 1 to limit.
    Raises ValueError.
    """
    found = _INTEGER.fullmatch(text)
    if not found:
        raise ValueError(text)
    sign = -1 if text.startswith("-") else 1
    value = 0
    for digit in found[1]:
        value = value * 10 + unicodedata.decimal(digit)
        if value > limit + 1:
            raise ValueError(text)
    if not -limit - 1 <= sign * value <= limit:
        raise ValueError(text)
    return sign * value


def duration_ns(text: str) -> int:
    """`Duration.parse`, such as P1DT2H3M4.5S: a duration in ns. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    parts = found.groupdict() if found else {}
    amounts = [parts.get(unit) for unit in ("days", "hours", "minutes", "seconds")]
    if all(amount is None for amount in amounts):
        raise ValueError(text)
    units_s = (86_400, 3_600, 60, 1)
    whole_s = sum(integer(amount or "0", LONG_MAX) * s for amount, s in zip(amounts, units_s, strict=True))
    fraction_ns = int((parts["fraction"] or "0").ljust(9, "0"))
    total_ns = whole_s * 10**9 + (-fraction_ns if (amounts[3] or "").startswith("-") else fraction_ns)
    if abs(whole_s) > LONG_MAX:
        raise ValueError(text)
    return -total_ns if parts["sign"] == "-" else total_ns


def double(text: str) -> float:
    """`Double.parseDouble`, which also takes NaN, 1f and 0x1p-1. Raises ValueError."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    if found := _DECIMAL.fullmatch(text):
        return float(found[1])
    found = _HEXADECIMAL.fullmatch(text)
    if not found or not (found["whole"] or found["fraction"]):
        raise ValueError(text)
    digits = f"{found['sign']}0x{found['whole'] or 0}.{found['fraction'] or 0}"
    try:
        return float.fromhex(f"{digits}p{_bounded(found['exponent'])}")
    except OverflowError:
        return float(f"{found['sign']}inf")


def _bounded(exponent: str) -> int:
    number = exponent.lstrip("+-").lstrip("0")[:10]
    value = min(int(number or "0"), _MAX_EXPONENT)
    return -value if exponent.startswith("-") else value


def double_text(value: float) -> str:
    """`Double.toString`: at least two digits, with an exponent below 0.001 and from ten million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) == 1:  # the nearest number with two digits
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others)}E{int(exponent) + len(others)}"
