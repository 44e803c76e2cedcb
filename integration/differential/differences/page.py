"""docs/differences.md: its rows, and the reasons why a row may have no key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).parents[3] / "docs" / "differences.md"
KEY = re.compile(r"`(D-[a-z0-9-]+)`")
REASON = re.compile(r"\*([a-z ]+)\*")
LEGEND = re.compile(r"^\* \*([a-z ]+)\*: ", re.MULTILINE)
COLUMNS = ["Key", "What", "Apache Kafka 4.4", "kshim", "Why"]


@dataclass(frozen=True)
class Row:
    """A difference. It has a key or a reason, or neither if the first column is empty or unreadable."""

    what: str
    key: str
    reason: str


def rows() -> list[Row]:
    """All rows of the table, without its headings."""
    lines = PATH.read_text().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert table[0] == COLUMNS
    return [_row(first, what) for first, what, *_ in table[2:] if not what.startswith("**")]


def legend() -> set[str]:
    """The reasons that stand above the table."""
    return set(LEGEND.findall(PATH.read_text()))


def _row(first: str, what: str) -> Row:
    key, reason = KEY.fullmatch(first), REASON.fullmatch(first)
    return Row(what, key[1] if key else "", reason[1] if reason else "")
