"""Draw the table of metrics into docs/http.md from `kshim/http/families.py`.

python -m docs.draw_metrics        writes what is between the markers of docs/http.md anew
"""

from __future__ import annotations

from pathlib import Path

from docs.draw_coordinator import drawn as _drawn
from kshim.http.families import COUNTER, FAMILIES

PAGE = Path(__file__).with_name("http.md")


def metrics() -> str:
    """A row for each family."""
    rows = ["| Metric | Kind | Labels | |", "|---|---|---|---|"]
    for name, family in FAMILIES.items():
        written = f"{name}_total" if family.kind == COUNTER else name
        rows.append(f"| `{written}` | {family.kind} | {', '.join(family.labels)} | {family.help} |")
    return "\n".join(rows)


def drawn(page: str) -> str:
    """`page` with the table drawn anew."""
    return _drawn(page, (metrics,))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
