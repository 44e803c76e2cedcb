"""python -m integration.hostile: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from integration.hostile.attack import MB
from integration.hostile.attacks import ATTACKS
from integration.hostile.run import BESIDE_LOAD, QUIET, Report, run
from integration.hostile.strike import Tally

COLUMNS = (
    f"{'attack':34} {'requests':>8} {'sent KB':>8} {'answered':>8} {'refused':>8} {'closed':>6} "
    f"{'silent':>6} {'victim':>6} {'worst ms':>8} {'peak MB':>7} {'kept MB':>7}  verdict"
)


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit status. words: instead of the command's own arguments."""
    parser = argparse.ArgumentParser(prog="python -m integration.hostile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks; without any, all")
    parser.add_argument("--list", action="store_true", help="print what each attack does, and stop")
    parser.add_argument(
        "--beside-load",
        action="store_true",
        help="the machine has other work: do not count time in which that has the processors, and allow "
        "waits of twice the length",
    )
    arguments = parser.parse_args(words)
    known = {attack.name: attack for attack in ATTACKS}
    if unknown := [name for name in arguments.names if name not in known]:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in arguments.names] or ATTACKS
    if arguments.list:
        for attack in chosen:
            print(f"{attack.name:24} {attack.what}")
        return 0
    print(COLUMNS)
    broken = 0
    for attack in chosen:
        with tempfile.TemporaryDirectory(prefix="kshim-hostile-") as directory:
            report = run(attack, Path(directory), BESIDE_LOAD if arguments.beside_load else QUIET)
        broken += bool(report.faults)
        print("\n".join(lines(report)), flush=True)
    print(f"{len(chosen)} attacks, {broken} of them broke a bound")
    return 1 if broken else 0


def lines(report: Report) -> list[str]:
    """The rows of one attack: a sum, its volleys if there are several, and the broken bounds."""
    tallies = [part.tally for part in report.parts]
    kept = f"{report.kept_bytes / MB:7.0f}"
    verdict = "BROKEN" if report.faults else "kept"
    found = [
        f"{_row(report.attack.name, tallies)} {report.victim_requests:6} {report.worst_ms:8.0f} "
        f"{report.peak_bytes / MB:7.0f} {kept}  {verdict}"
    ]
    if len(report.parts) > 1:
        found += [
            f"{_row('  ' + part.label, [part.tally])} {'':6} {part.worst_ms:8.0f} {part.peak_bytes / MB:7.0f}"
            for part in report.parts
        ]
    return found + [f"    {fault}" for fault in report.faults]


def _row(name: str, tallies: Sequence[Tally]) -> str:
    requests, sent, answered, refused, closed, silent = (
        sum(getattr(tally, column) for tally in tallies)
        for column in ("requests", "sent_bytes", "answered", "refused", "closed", "unanswered")
    )
    return f"{name:34} {requests:8} {sent // 1000:8} {answered:8} {refused:8} {closed:6} {silent:6}"


if __name__ == "__main__":
    sys.exit(main())
