"""Draw the states of a connection into docs/architecture.md from `kshim/network/states.py`.

python -m docs.draw_connection        writes what is between the markers of docs/architecture.md anew
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from docs.draw_coordinator import drawn as _drawn
from kshim.network.states import NEXT, State

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)

PAGE = Path(__file__).with_name("architecture.md")


def connection() -> str:
    """A row for each state: what the connection does in it, and what leads to which other."""
    assert len(NEXT) == len(State)
    return states(NEXT)


def states(table: Mapping[S, Mapping[E, S]]) -> str:
    """A row for each state of `table`: its meaning, and what leads to which other."""
    rows = ["| State | Meaning | It … |", "|---|---|---|"]
    for state, following in table.items():
        after = ", ".join(f"{_words(event.name)} → {_title(to.name)}" for event, to in following.items())
        rows.append(f"| {_title(state.name)} | {state.value} | {after} |")
    return "\n".join(rows)


def _title(name: str) -> str:
    return _words(name).capitalize()


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def drawn(page: str) -> str:
    """`page` with the table drawn anew."""
    return _drawn(page, (connection,))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
