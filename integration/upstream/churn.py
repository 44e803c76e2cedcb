"""Eight members of two clients, which come and go, while faults happen to kshim and to Apache Kafka.

Two kshim in front of one or three nodes; four members read, and four copy exactly once, in transactions. In
each round the seed draws a fault, to whom it happens, and a member that is replaced meanwhile.

    python -m integration.upstream.churn --rounds 100 --kafka 3 --seed 7
    python -m integration.upstream.churn --rounds 20 --faults cut,hole
    python -m integration.upstream.churn --kafka 3 --seed 12 --skip 19 --rounds 1 --keep logs

Nothing that was acknowledged is lost, no committed offset goes back, no partition is owned twice in a
generation, and a reader of committed transactions finds each record once. Prints how long members were
without a commit whose group was coordinated by the kshim that it happened to; those of the group in which a
member was replaced are left out. SIGTERM ends it after the present round. Exit status 1 if something was
wrong.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.upstream.gaps import names, percentile
from integration.upstream.play import load_average
from integration.upstream.seats import PROGRAMS
from integration.upstream.stage import FAULTS, Stage


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="integration.upstream.churn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=10, help="how many faults (default: %(default)s)")
    parser.add_argument("--kafka", type=int, default=1, help="nodes of Apache Kafka (default: %(default)s)")
    parser.add_argument("--faults", type=names(list(FAULTS)), default=list(FAULTS), help="drawn from these")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--skip", type=int, default=0, help="draw so many rounds first, and play none")
    parser.add_argument("--keep", type=Path, help="a new directory for the logs of all processes")
    options = parser.parse_args()
    is_enough: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: is_enough.append(number))
    with tempfile.TemporaryDirectory() as directory:
        stage = Stage(Path(directory), options.kafka, options.seed)
        played = 0
        try:
            stage.begin()
            for _ in range(options.skip):
                stage.draw(options.faults)
            for played in range(1, options.rounds + 1):
                done = stage.play(stage.draw(options.faults))
                when = time.strftime("%H:%M:%S")
                print(
                    f"{when} round {options.skip + played}: {done}, load average {load_average():.1f}",
                    flush=True,
                )
                if is_enough:
                    break
            wrong = stage.judge()
        except AssertionError as error:  # what was measured until then is told, too
            wrong = [str(error)]
        finally:
            stage.end()
            if options.keep:
                stage.keep(options.keep)
    print(f"{played} rounds, seed {options.seed}", *report(stage, wrong), sep="\n")
    return 1 if wrong else 0


def report(stage: Stage, wrong: Sequence[str]) -> list[str]:
    commits = sum(len(times) for group in stage.groups for times in group.series())
    copies = sum(group.seen.count for group in stage.groups if group.copies_to)
    replaced = ", ".join(f"{kind}: {len(words)}" for kind, words in stage.replaced.items())
    return [
        f"{commits:,} commits acknowledged, {len(stage.feed.acknowledged):,} records sent, {copies:,} copies",
        f"{len(wrong)} lost, gone back, owned twice, or read twice in read_committed",
        *wrong[:20],
        f"members that stood still or ended, and were replaced: {replaced or 'none'}",
        *(words for each in stage.replaced.values() for words in each),
        f"load average up to {stage.most_loaded:.1f}",
        *table(stage),
    ]


def table(stage: Stage) -> list[str]:
    """How long nobody could commit, in s: by fault, and for each kind of member p50 and p99."""
    kinds = [str(kind) for kind in PROGRAMS]
    lines = [" | ".join(("| fault", *kinds)) + " |", "|---" * (len(kinds) + 1) + "|"]
    for fault in FAULTS:
        cells = [_cell(stage.gaps[fault, kind]) for kind in kinds]
        lines.append(" | ".join((f"| {fault}", *cells)) + " |")
    return lines


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{percentile(values, 0.5):.1f}, {percentile(values, 0.99):.1f} ({len(values)})"


if __name__ == "__main__":
    sys.exit(main())
