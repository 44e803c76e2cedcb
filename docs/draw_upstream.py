"""Draw what becomes of each request, the settings, and the states of a passage into docs/upstream.md.

python -m docs.draw_upstream        writes what is between the markers of docs/upstream.md anew
"""

from __future__ import annotations

from pathlib import Path

from docs.draw_connection import states
from docs.draw_coordinator import drawn as _drawn
from kshim.configs.config import PROPERTIES
from kshim.upstream.missing import OLDEST, PARTS
from kshim.upstream.passage_states import FLOWS, NEXT
from kshim.upstream.table import TABLE, Entry, Way

PAGE = Path(__file__).with_name("upstream.md")
ANY = Entry(Way.FORWARDED).newest
SETTINGS = tuple(
    f"upstream.{each}." for each in ("advertised", "drain", "groups", "identities", "offsets", "sasl.pass")
)


def ways() -> str:
    """A row for each way, with what it means."""
    rows = ["| | A request … |", "|---|---|"]
    rows += [f"| {way.name.lower()} | {way.value} |" for way in Way]
    return "\n".join(rows)


def requests() -> str:
    """A row for each API that clients may know; those that are simply forwarded come last, in one."""
    rows = ["| Request | | |", "|---|---|---|"]
    plain = []
    for api_key, entry in TABLE.items():
        name = f"{api_key.title} ({api_key.value})"
        if entry == Entry(Way.FORWARDED):
            plain.append(name)
            continue
        limit = "" if entry.newest == ANY else f"; up to v{entry.newest}"
        rows.append(f"| {name} | {entry.way.name.lower()} | {entry.why}{limit} |")
    rows.append(f"| {', '.join(plain)} | {Way.FORWARDED.name.lower()} | |")
    return "\n".join(rows)


def settings() -> str:
    """A row for each property of kshim's groups and names."""
    rows = ["| Property | Default | |", "|---|---|---|"]
    for name, known in PROPERTIES.items():
        if name.startswith(SETTINGS):
            rows.append(f"| `{name}` | {known.default} | {known.doc} |")
    return "\n".join(rows)


def releases() -> str:
    """A row for each part of Kafka that an older upstream lacks."""
    rows = ["| Since Kafka | it has | without it |", "|---|---|---|"]
    rows += [f"| {part.since} | {part.what} | {part.without} |" for part in (OLDEST, *PARTS)]
    return "\n".join(rows)


def passage() -> str:
    """A row for each state of a passage: what becomes of requests in it."""
    return states(NEXT)


def responses() -> str:
    """A row for each state of a passage: what becomes of responses in it."""
    return states(FLOWS)


def drawn(page: str) -> str:
    """`page` with the tables drawn anew."""
    return _drawn(page, (ways, requests, settings, passage, responses, releases))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
