"""Kill, stop and freeze kshim and Apache Kafka by turns, while groups commit.

Nothing that was acknowledged is lost, no read goes back, no partition is owned twice in a generation; and how
long could nobody commit?

    python -m integration.upstream.gaps --rounds 21 --kshim 3 --faults kill,stop,freeze
    python -m integration.upstream.gaps --rounds 50 --kafka 3 --consumers kafka-python,librdkafka
    python -m integration.upstream.gaps --rounds 8 --kafka 3 --faults kafka

Prints for each kind of fault how long the groups had to wait that were coordinated by the process it happened
to: from the last commit before it to the first one after. Exit status 1 if something was lost or went back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from integration.upstream.load import PROGRAMS, Consumers
from integration.upstream.play import FAULTS, Play, load_average

GROUPS = 8


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(fault: str, what: str, values: Sequence[float]) -> str:
    figures = (percentile(values, 0.5), percentile(values, 0.99), max(values))
    return f"{fault:8}{what:36}{len(values):5}" + "".join(f"{figure:8.2f}" for figure in figures)


def table(play: Play) -> list[str]:
    """The table of the measured times, in s."""
    lines = [f"{'fault':8}{'what':36}{'times':>5}{'p50 s':>8}{'p99 s':>8}{'most s':>8}"]
    for fault in FAULTS:
        if play.told_s[fault]:
            lines.append(row(fault, "until others are to lead its shards", play.told_s[fault]))
        lines += [
            row(fault, f"without commits: {kind}", values)
            for (of, kind), values in play.gaps.items()
            if of == fault
        ]
    return lines


def names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A type for argparse: names with commas between them."""

    def read(text: str) -> list[str]:
        found = [each for each in text.split(",") if each]
        if unknown := set(found) - set(known):
            raise argparse.ArgumentTypeError(
                f"{', '.join(sorted(unknown))}: expected some of {', '.join(known)}"
            )
        return found

    return read


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="integration.upstream.gaps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=9, help="how many faults (default: %(default)s)")
    parser.add_argument("--kafka", type=int, default=1, help="nodes of Apache Kafka (default: %(default)s)")
    parser.add_argument("--kshim", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument(
        "--faults", type=names(list(FAULTS)), default=["kill"], help="by turns (default: kill)"
    )
    parser.add_argument("--groups", type=int, default=GROUPS, help="of bare commits (default: %(default)s)")
    parser.add_argument(
        "--consumers",
        type=names(list(PROGRAMS)),
        default=[],
        help=f"a group of each of these real clients, too: {', '.join(PROGRAMS)}",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        play = Play(Path(directory), options.kafka, options.kshim, options.seed)
        try:
            play.begin(options.groups, options.consumers)
            for number in range(options.rounds):
                fault = options.faults[number % len(options.faults)]
                play.round(fault)
                print(f"round {number + 1}: {fault}, load average {load_average():.1f}", flush=True)
            wrong = play.judge()
        except AssertionError as error:  # what was measured until then is told, too
            wrong = [str(error)]
        finally:
            play.end()
    print(*report(play, wrong), sep="\n")
    return 1 if wrong else 0


def report(play: Play, wrong: Sequence[str]) -> list[str]:
    commits = sum(len(times) for group in play.groups for times in group.series())
    rebalances = sum(each.rebalances() for each in play.groups if isinstance(each, Consumers))
    return [
        f"{commits:,} commits acknowledged; {len(wrong)} lost, gone back, or owned twice",
        *wrong[:20],
        f"{rebalances} rebalances of real consumers; load average up to {play.most_loaded:.1f}",
        *table(play),
    ]


if __name__ == "__main__":
    sys.exit(main())
