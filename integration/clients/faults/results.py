"""The observed effects of each fault, a line of JSON each, and the table of docs/faults.md made of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from integration.clients.faults.cases import CASES, CLIENTS
from integration.clients.faults.watching import JOINS_AGAIN, STOPS, SUCCEEDS

PAGE: Final = Path(__file__).parents[3] / "docs" / "faults.md"
START, END = "<!-- table -->\n", "<!-- /table -->\n"
HEADINGS: Final = {
    "poll": "A consumer at work",
    "commit": "A consumer that commits and waits for the answer",
    "open": "A consumer that has just begun",
}
TITLES: Final = {
    "kafka-python": "kafka-python",
    "confluent-kafka": "confluent-kafka (librdkafka)",
    "kafka-clients-4.2": "Java kafka-clients",
}
LATE_S = 0.5
"""Less is not worth a word: a busy machine does as much."""


@dataclass(frozen=True)
class Result:
    """The observed effects of one fault on one client."""

    client: str
    version: str
    case: str
    said: Sequence[str]
    late_s: float
    has_some_twice: bool


def note(path: Path, result: Result) -> None:
    """Add a result to the file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    return [Result(**json.loads(line)) for line in path.read_text().splitlines()]


def drawn(page: str, results: Iterable[Result]) -> str:
    """The page with the table of these results; the last one of each fault and client counts."""
    found = {(result.client, result.case): result for result in results}
    versions = {result.client: result.version for result in found.values()}
    titles = [f"{TITLES[client]} {versions[client]}" for client in CLIENTS]
    lines = [_row(["Fault", *titles]), _row(["---"] * 4)]
    heading = ""
    for case in CASES:
        if HEADINGS[case.when] != heading:
            heading = HEADINGS[case.when]
            lines.append(_row([f"**{heading}**", "", "", ""]))
        lines.append(_row([case.name, *(_cell(found[client, case.name]) for client in CLIENTS)]))
    before, rest = page.split(START)
    _, after = rest.split(END)
    return before + START + "\n".join(lines) + "\n" + END + after


def _cell(result: Result) -> str:
    """The observed effects, the most important first."""
    order = (STOPS, SUCCEEDS)
    said = sorted(result.said, key=lambda part: (part not in order, part == JOINS_AGAIN, part))
    if result.has_some_twice:
        said.append("has some records twice")
    if result.late_s >= LATE_S and STOPS not in said:
        said.append(f"records up to {result.late_s:.1f} s late")
    return ", ".join(said) or "goes on"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(), read(Path(sys.argv[1]))))
