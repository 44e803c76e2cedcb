"""The results of a run, and the table of docs/security.md that is made of them.

python -m integration.clients.security.results FILE
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from integration.clients.security.cells import CELLS
from integration.clients.security.world import BROKERS

RESULTS = "KSHIM_RESULTS"
"""The file that gets the results, one a line."""
PASSED, FAILED = "passed", "failed"
MARKS = {PASSED: "✓", FAILED: "✗", "": "–"}


@dataclass
class Result:
    """The result of one client at one server."""

    client: str
    broker: str
    cell: str
    is_wrong: bool = False
    """Whether its password was wrong."""
    version: str = ""
    outcome: str = FAILED
    said: str = ""
    """By the client, when it failed to authenticate."""


@contextmanager
def noted(result: Result) -> Iterator[Result]:
    """Within: what is tried; it has passed if nothing is raised."""
    try:
        yield result
        result.outcome = PASSED
    finally:
        path = os.environ.get(RESULTS)
        if path:
            with Path(path).open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    """The last result of each try."""
    found = [Result(**json.loads(line)) for line in path.read_text().splitlines()]
    return list({(each.client, each.broker, each.cell, each.is_wrong): each for each in found}.values())


def page(results: Sequence[Result]) -> str:
    """Two tables: what works at the brokers, in their order; and what clients say of a wrong password, to
    each broker if they do not say the same.
    """
    versions = {each.client: each.version for each in results if each.version}
    names = sorted(versions)
    lines = [
        f"| | {' | '.join(f'{name} {versions[name]}' for name in names)} |",
        "|---|" + "---|" * len(names),
    ]
    for cell in map(str, CELLS):
        marks = [" ".join(_mark(results, name, broker, cell) for broker in BROKERS) for name in names]
        lines.append(f"| {cell} | {' | '.join(marks)} |")
    lines += ["", "| Client | Mechanism | says of a wrong password |", "|---|---|---|"]
    wrong = {(each.client, each.cell) for each in results if each.is_wrong and each.outcome == PASSED}
    for name, cell in sorted(wrong):
        said = {
            each.broker: _plain(each.said)
            for each in results
            if (each.client, each.cell, each.is_wrong) == (name, cell, True)
        }
        alike = len(set(said.values())) == 1
        told = next(iter(said.values())) if alike else "; ".join(f"{at}: {text}" for at, text in said.items())
        lines.append(f"| {name} | {cell.rpartition(' ')[2]} | {told} |")
    return "\n".join(lines)


def _mark(results: Sequence[Result], client: str, broker: str, cell: str) -> str:
    found = [each for each in results if (each.client, each.broker, each.cell) == (client, broker, cell)]
    return MARKS[next((each.outcome for each in found if not each.is_wrong), "")]


def _plain(said: str) -> str:
    """Without addresses and times, and what would end a cell of the table."""
    said = re.sub(r"(\d{1,3}\.){3}\d{1,3}:\d+", "SERVER", said)
    said = re.sub(r"\d+ms", "… ms", said)
    return " ".join(said.replace("|", "/").split())[:300]


if __name__ == "__main__":
    print(page(read(Path(sys.argv[1]))))
