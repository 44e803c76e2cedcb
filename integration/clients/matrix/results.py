"""Results of the scenarios, a line of JSON each, and the table that `docs/compatibility.md` is.

KSHIM_RESULTS=results.jsonl tox -m matrix
python -m integration.clients.matrix.results results.jsonl > docs/compatibility.md
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
MARKS = {PASSED: "yes", FAILED: "**no**", SKIPPED: "–"}
HEAD = """# Which clients work with kshim

Each scenario below is run by each unmodified client, against kshim and against Apache Kafka 4.2, by
`tox -m matrix`; this page is made from the results. *yes*: it passed with both. *–*: the client has no such
call, or does not promise what the scenario asks for; the reasons are below the table. Anything else says what
happened with kshim and with Apache Kafka.
"""


@dataclass(frozen=True)
class Result:
    """What became of one scenario."""

    client: str
    version: str
    broker: str
    scenario: str
    outcome: str
    why: str = ""
    date: str = ""


def note(path: Path, result: Result) -> None:
    """Add a result to the file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    """The last result of each scenario, in the order of the first."""
    found: dict[tuple[str, ...], Result] = {}
    for line in path.read_text().splitlines():
        result = Result(**json.loads(line))
        found[result.client, result.version, result.broker, result.scenario] = result
    return list(found.values())


def page(results: Sequence[Result]) -> str:
    """The page."""
    clients = sorted({(result.client, result.version) for result in results}, key=_sort_key)
    scenarios = dict.fromkeys(result.scenario for result in results)
    found = {(r.client, r.version, r.scenario, r.broker): r for r in results}
    lines = [HEAD, _totals(results, clients), ""]
    lines += [_row(["Scenario", *(f"{name} {version}" for name, version in clients)])]
    lines += [_row(["---"] * (len(clients) + 1))]
    for scenario in scenarios:
        cells = [
            _cell(found.get((*client, scenario, KSHIM)), found.get((*client, scenario, APACHE_KAFKA)))
            for client in clients
        ]
        lines.append(_row([scenario, *cells]))
    lines += ["", "Not tried, and why:", "", *_reasons(results), ""]
    return "\n".join(lines)


def _totals(results: Sequence[Result], clients: Iterable[tuple[str, str]]) -> str:
    rows = [_row(["Client", "with kshim", "with Apache Kafka", "not tried", "on"]), _row(["---"] * 5)]
    for name, version in clients:
        own = [result for result in results if (result.client, result.version) == (name, version)]
        tried = {
            broker: [r for r in own if r.broker == broker and r.outcome != SKIPPED]
            for broker in (KSHIM, APACHE_KAFKA)
        }
        passed = [f"{sum(r.outcome == PASSED for r in found)} of {len(found)}" for found in tried.values()]
        skipped = sum(r.outcome == SKIPPED and r.broker == KSHIM for r in own)
        rows.append(_row([f"{name} {version}", *passed, str(skipped), max(r.date for r in own)]))
    return "\n".join(rows)


def _cell(kshim: Result | None, kafka: Result | None) -> str:
    outcomes = {result.outcome for result in (kshim, kafka) if result is not None}
    if len(outcomes) == 1:
        return MARKS[outcomes.pop()]
    return ", ".join(
        f"{name} {MARKS[result.outcome]}"
        for name, result in (("kshim", kshim), ("Kafka", kafka))
        if result is not None
    )


def _reasons(results: Iterable[Result]) -> list[str]:
    reasons = {
        f"* {result.client}, {result.scenario}: {result.why}"
        for result in results
        if result.outcome == SKIPPED
    }
    return sorted(reasons)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _sort_key(client: tuple[str, str]) -> tuple[str, list[int]]:
    return client[0], [int(part) for part in client[1].split(".") if part.isdecimal()]


def today() -> str:
    return datetime.date.today().isoformat()


if __name__ == "__main__":
    print(page(read(Path(sys.argv[1]))), end="")
