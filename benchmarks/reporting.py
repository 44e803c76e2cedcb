"""Says what was measured: a table a case, and a file with every round."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparing import Spread, ratios, spread
from benchmarks.processor import Measured, load_average
from benchmarks.running import Plan, Series
from benchmarks.servers import APACHE_KAFKA, KSHIM, UPSTREAM
from integration.apache_kafka.jars import VERSION

GENERATOR_LIMIT = 0.9
"""A generator that is as busy as this, or more, may be what was measured."""
MARK = "*"
PACKAGES = ("kshim", "aiokafka", "confluent-kafka", "kafka-python", "lmdb", "twisted")
LEGEND = (
    "Ratio: the median of the rounds, and their range; above 1 kshim is better, by more or by less.\n"
    "µs/req: processor time of the server for a request or record; MiB: its peak memory, with mapped files.\n"
    f"{MARK} the load generator was busy for {GENERATOR_LIMIT:.0%} of its time: it may have been the limit."
)

Row = list[str]


def peer_of(found: Sequence[Series]) -> Series | None:
    """The peer's figures; it has none if it runs elsewhere and the case starts servers itself."""
    return next((each for each in found if each.side.kind != KSHIM), None)


def titles(found: Sequence[Series]) -> Row:
    """The titles of a case's table; without a peer it has fewer columns."""
    case, peer = found[0].case, peer_of(found)
    if peer is None:
        return [case, "flush", "figure", "kshim", "range", "µs/req", "MiB"]
    return [
        *(case, "flush", "figure", "kshim", peer.side.name, "ratio", "range"),
        *("µs/req", "peer's", "MiB", "peer's"),
    ]


def rows(found: Sequence[Series]) -> list[Row]:
    """A row for each figure of each way to run kshim under one load."""
    peer = peer_of(found)
    return [
        _row(ours, peer, figure, is_first=not number)
        for ours in found
        if ours.side.kind == KSHIM
        for number, figure in enumerate(ours.rounds[0].figures)
    ]


def _row(ours: Series, peer: Series | None, figure: str, is_first: bool) -> Row:
    row = [ours.load if is_first else "", ours.side.flush if is_first else "", figure, _figure(ours, figure)]
    if peer is None:
        return [*row, _range(spread(ours.values(figure))), *(_used(ours) if is_first else ("", ""))]
    compared = spread(ratios(figure, ours.values(figure), peer.values(figure)))
    row += [_figure(peer, figure), number(compared.middle if compared else None), _range(compared)]
    if not is_first:
        return [*row, "", "", "", ""]
    (our_cpu, our_memory), (their_cpu, their_memory) = _used(ours), _used(peer)
    return [*row, our_cpu, their_cpu, our_memory, their_memory]


def number(value: float | None) -> str:
    """Three digits that matter, or all before the point."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def _figure(series: Series, figure: str) -> str:
    found = spread(series.values(figure))
    mark = MARK if found and was_limited(series.rounds) else ""
    return number(found.middle if found else None) + mark


def was_limited(rounds: Sequence[Measured]) -> bool:
    """True if the generator may have been the limit."""
    return median(each.generator_busy for each in rounds) >= GENERATOR_LIMIT


def _range(found: Spread | None) -> str:
    return f"{number(found.least)}..{number(found.most)}" if found else "-"


def _used(series: Series) -> tuple[str, str]:
    cpu = [used for each in series.rounds if (used := each.cpu_us_a_request) is not None]
    memory = [each.peak_mib for each in series.rounds if each.peak_mib is not None]
    return number(median(cpu) if cpu else None), number(median(memory) if memory else None)


def as_json(all_found: Sequence[Series], plan: Plan) -> dict[str, Any]:
    """Every figure of every round, and where it was measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {
            "python": platform.python_version(),
            **{name: found for name in PACKAGES if (found := _version(name))},
            **({"Apache Kafka": VERSION} if plan.peer in (APACHE_KAFKA, UPSTREAM) else {}),
        },
        "peer": plan.peer or None,
        "seconds": plan.seconds,
        "load average": load_average(),
        "measured": [
            {
                "case": each.case,
                "load": each.load,
                "server": each.side.name,
                "flush": each.side.flush or None,
                "rounds": [measured.as_dict() for measured in each.rounds],
            }
            for each in all_found
        ],
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
