"""Draw the tables of faults, anomalies and the museum into docs/torture.md, from the code.

python -m docs.draw_torture        writes what is between the markers of docs/torture.md anew
"""

from __future__ import annotations

from pathlib import Path

from docs.draw_coordinator import drawn as _drawn
from integration.torture.museum.pieces import PIECES
from integration.torture.strangers.programs import STRANGERS
from kshim.torture.faults import FAULTS
from kshim.torture.promises import BREAKING, MEANING, Anomaly, Promise

CLIENTS = {
    "kafka_python": "kafka-python",
    "aiokafka_tasks": "aiokafka",
    "confluent": "confluent-kafka",
    "confluent_writing": "confluent-kafka",
    "java": "kafka-clients 4.4",
}
PAGE = Path(__file__).parent / "torture.md"


def faults() -> str:
    """A row for each fault."""
    rows = [f"| `{each.name}` | {each.does} | {each.finds} |" for each in FAULTS.values()]
    return "\n".join(["| Fault | What is done | The bug it finds |", "|---|---|---|", *rows])


def anomalies() -> str:
    """A row for each anomaly: what it means, and which promises it breaks."""
    rows = [f"| {anomaly} | {MEANING[anomaly]} | {_broken(anomaly)} |" for anomaly in Anomaly]
    return "\n".join(["| Anomaly | What it means | Breaks |", "|---|---|---|", *rows])


def _broken(anomaly: Anomaly) -> str:
    broken = [promise for promise in Promise if anomaly in BREAKING[promise]]
    if len(broken) == len(Promise):
        return "every promise"
    return ", ".join(broken) or "`--in-order`"


def museum() -> str:
    """A row for each piece of the museum."""
    rows = []
    for each in PIECES:
        found = ", ".join(each.anomalies)
        rows.append(f"| `{each.broken}` ({CLIENTS[each.client]}) | {each.bug} | {found} | `{each.mended}` |")
    return "\n".join(["| Program | Its bug | What is found | Mended |", "|---|---|---|---|", *rows])


def strangers() -> str:
    """A row for each program of a framework."""
    rows = []
    for each in STRANGERS:
        found = f"**{' or '.join(each.found)}**: {each.why}" if each.found else "nothing"
        rows.append(f"| {each.framework} | {each.promise} | {found} |")
    return "\n".join(["| Framework | It promises | What breaks that |", "|---|---|---|", *rows])


def drawn(page: str) -> str:
    """`page` with the tables drawn anew."""
    return _drawn(page, (faults, anomalies, museum, strangers))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
