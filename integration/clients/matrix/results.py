"""Results of the scenarios, a line of JSON each, and the table that `docs/compatibility.md` is.

KSHIM_RESULTS=results.jsonl tox -m matrix
python -m integration.clients.matrix.results results.jsonl > docs/compatibility.md
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from integration.apache_kafka.jars import RELEASE

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
MARKS = {PASSED: "✓", FAILED: "✗", SKIPPED: "–"}
CONSUMER = "-consumer"
"""The end of the names of clients with group.protocol=consumer."""
MIXED = "members of different clients: "
HEAD = f"""# Which clients work with kshim

Each scenario below is run by each unmodified client, against kshim and against Apache Kafka {RELEASE}
(4.2 up to 2026-11-23), by `tox -m matrix`; this page is made from the results. ✓: it passed with both.
✗: it failed with both, so the client is at fault. –: the client has no such call, or does not promise what
the scenario asks for; the reasons are at the end. Anything else says what happened with kshim and with
Apache Kafka.
"""
ONLY_KSHIM = (
    "Only kshim is steered to move leaders and coordinators; those scenarios do not run with Apache Kafka."
)
WITH_CONSUMER = """## With group.protocol=consumer

These members speak the protocol of KIP-848. The assignors, `range` and `uniform`, are the server's.
"""
TOGETHER = """## Members of different clients in one group

With each assignor that both have, two members share six partitions; then one leaves.
"""

Client = tuple[str, str]
"""Its name and version."""


@dataclass(frozen=True)
class Result:
    """The outcome of one scenario."""

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
        if result.scenario.startswith(MIXED):  # in either order; the version of one of two says little
            one, other = sorted((result.client, result.scenario.removeprefix(MIXED)))
            result = replace(result, client=one, version="", scenario=MIXED + other)
        found[result.client, result.version, result.broker, result.scenario] = result
    return list(found.values())


def page(results: Sequence[Result]) -> str:
    """The page."""
    alone = [result for result in results if not result.scenario.startswith(MIXED)]
    together = [result for result in results if result.scenario.startswith(MIXED)]
    clients = sorted({(result.client, result.version) for result in alone}, key=_sort_key)
    classic, consumer = (
        [each for each in clients if each[0].endswith(CONSUMER) is is_consumer]
        for is_consumer in (False, True)
    )
    parts = [HEAD, _totals(alone, clients), "## Scenarios", _scenarios(alone, classic), ONLY_KSHIM]
    if consumer:
        parts += [WITH_CONSUMER, _scenarios(alone, consumer)]
    if together:
        parts += [TOGETHER, _mixtures(together)]
    return "\n\n".join([part.strip() for part in [*parts, "## Not tried, and why", _reasons(results)]]) + "\n"


def _totals(results: Sequence[Result], clients: Iterable[Client]) -> str:
    rows = [["Client", "with kshim", "with Apache Kafka", "not tried", "on"], ["---"] * 5]
    for client in clients:
        own = [result for result in results if (result.client, result.version) == client]
        passed = [_passed(own, broker) for broker in (KSHIM, APACHE_KAFKA)]
        skipped = sum(result.outcome == SKIPPED and result.broker == KSHIM for result in own)
        rows.append([_title(client), *passed, str(skipped), max(result.date for result in own)])
    rows.append(["all", *(_passed(results, broker) for broker in (KSHIM, APACHE_KAFKA)), "", ""])
    return _table(rows)


def _passed(results: Iterable[Result], broker: str) -> str:
    tried = [result for result in results if result.broker == broker and result.outcome != SKIPPED]
    return f"{sum(result.outcome == PASSED for result in tried)} of {len(tried)}"


def _scenarios(results: Sequence[Result], clients: Sequence[Client]) -> str:
    found = {(r.client, r.version, r.scenario, r.broker): r for r in results}
    rows = [["Scenario", *(_title(client) for client in clients)], ["---"] * (len(clients) + 1)]
    for scenario in dict.fromkeys(r.scenario for r in results if (r.client, r.version) in clients):
        cells = [
            [found.get((*client, scenario, broker)) for broker in (KSHIM, APACHE_KAFKA)] for client in clients
        ]
        rows.append([scenario, *(_cell(*cell) for cell in cells)])
    return _table(rows)


def _mixtures(results: Sequence[Result]) -> str:
    names = sorted({result.client for result in results})
    found = {}
    for result in results:
        other = result.scenario.removeprefix(MIXED)
        found[result.client, other, result.broker] = found[other, result.client, result.broker] = result
    rows = [["", *names], ["---"] * (len(names) + 1)]
    passed = {broker: _passed(results, broker) for broker in (KSHIM, APACHE_KAFKA)}
    for name in names:
        cells = [[found.get((name, other, broker)) for broker in (KSHIM, APACHE_KAFKA)] for other in names]
        rows.append([name, *(_cell(*cell) for cell in cells)])
    return f"{_table(rows)}\n\nWith kshim {passed[KSHIM]}, with Apache Kafka {passed[APACHE_KAFKA]}."


def _cell(kshim: Result | None, kafka: Result | None) -> str:
    outcomes = {result.outcome for result in (kshim, kafka) if result is not None}
    if len(outcomes) == 1:
        return MARKS[outcomes.pop()]
    return ", ".join(
        f"{name} {MARKS[result.outcome]}"
        for name, result in (("kshim", kshim), ("Kafka", kafka))
        if result is not None
    )


def _reasons(results: Iterable[Result]) -> str:
    """Each client's reasons, with the scenarios that each is for."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for result in results:
        if result.outcome == SKIPPED:
            found.setdefault((result.client, result.why.removeprefix(f"{result.client}: ")), {})[
                result.scenario
            ] = None
    return "\n".join(
        f"* {name}: {why} ({'; '.join(scenarios)})" for (name, why), scenarios in sorted(found.items())
    )


def _title(client: Client) -> str:
    """The name and version of a client, of which some have a part of the version in the name."""
    name, version = client
    stem, _, last = name.rpartition("-")
    return f"{stem if stem and version.startswith(last) else name} {version}"


def _table(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _sort_key(client: tuple[str, str]) -> tuple[str, list[int]]:
    return client[0], [int(part) for part in client[1].split(".") if part.isdecimal()]


def today() -> str:
    return datetime.date.today().isoformat()


if __name__ == "__main__":
    print(page(read(Path(sys.argv[1]))), end="")
