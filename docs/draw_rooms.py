"""Draw the rooms into docs/architecture.md: their order from setup.cfg, their imports from the code.

python -m docs.draw_rooms        writes what is between the markers of docs/architecture.md anew
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path

import grimp

from docs.draw_coordinator import drawn as _drawn

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def arrows() -> str:
    """The rooms as Mermaid text, with an arrow to each room directly below one that imports it."""
    imports, order = _imports(), _layers()
    lines = ["```mermaid", "flowchart TD"]
    for room in order:
        beneath = _beneath(room, imports)
        assert all(order.index(room) < order.index(each) for each in beneath), f"an arrow from {room} upward"
        lines += [f"    {room} --> {each}" for each in sorted(beneath, key=order.index)]
    return "\n".join([*lines, "```"])


def rooms() -> str:
    """A row for each room, highest first: what it is."""
    rows = [f"| `{room}` | {_meaning(room)} |" for room in _layers()]
    return "\n".join(["| Room | What it is |", "|---|---|", *rows])


def _layers() -> list[str]:
    """The rooms in the order of their layers, highest first."""
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    layers = settings["importlinter:contract:layers"]["layers"].replace(":", " ").split()
    return [room for room in layers if (ROOT / "kshim" / room).is_dir()]


def _imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    graph = grimp.build_graph("kshim", cache_dir=None)
    imports = {name.split(".")[1]: set[str]() for name in graph.find_children("kshim")}
    for module in graph.modules - {"kshim"}:
        room = module.split(".")[1]
        imported = graph.find_modules_directly_imported_by(module) - {"kshim"}
        imports[room] |= {name.split(".")[1] for name in imported} - {room}
    return imports


def _beneath(room: str, imports: Mapping[str, set[str]]) -> set[str]:
    """The rooms that a room imports, without those on which one of the others stands."""
    return {
        each
        for each in imports[room]
        if not any(each in _below(other, imports) for other in imports[room] - {each})
    }


def _below(room: str, imports: Mapping[str, set[str]]) -> set[str]:
    """All rooms on which a room stands."""
    return imports[room].union(*(_below(each, imports) for each in imports[room]))


def _meaning(room: str) -> str:
    """The first sentence of the room's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / "kshim" / room / "__init__.py").read_text())) or ""
    return text.partition("\n")[0].removesuffix(".")


def drawn(page: str) -> str:
    """`page` with the table and the arrows drawn anew."""
    return _drawn(page, (rooms, arrows))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
