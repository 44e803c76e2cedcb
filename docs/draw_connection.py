"""Draw the states of a connection into docs/architecture.md from `kshim/network/states.py`.

python -m docs.draw_connection        writes what is between the markers of docs/architecture.md anew
"""

from __future__ import annotations

from pathlib import Path

from docs.draw_coordinator import drawn as _drawn
from kshim.network.states import NEXT, State

PAGE = Path(__file__).with_name("architecture.md")


def connection() -> str:
    """A row for each state: what the connection does in it, and what leads to which other."""
    rows = ["| State | Meaning | It … |", "|---|---|---|"]
    for state, following in NEXT.items():
        after = ", ".join(f"{_words(event.name)} → {to.name.title()}" for event, to in following.items())
        rows.append(f"| {state.name.title()} | {state.value} | {after} |")
    assert len(NEXT) == len(State)
    return "\n".join(rows)


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def drawn(page: str) -> str:
    """`page` with the table drawn anew."""
    return _drawn(page, (connection,))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
