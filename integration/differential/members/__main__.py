"""Play invented histories of consumer groups: `python -m integration.differential.members --histories N`."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from integration.differential.members.history import TOPICS, History
from integration.differential.members.side import Side
from integration.differential.playing import pairs

EVERY = 50
"""After so many histories the command says how long it took."""


@contextlib.contextmanager
def two_sides(pair: pairs.Pair) -> Iterator[tuple[Side, Side]]:
    """Connections to both servers of a pair, with TOPICS."""
    made = []
    for server in (pair.apache_kafka, pair.kshim):
        ids = {name: pairs.create_topic(server, name, partitions) for name, partitions in TOPICS.items()}
        made.append(Side(server, ids))
    yield made[0], made[1]
    for each in made:
        each.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="integration.differential.members", description=__doc__)
    parser.add_argument("--histories", type=int, default=1000, help="how many histories")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first history")
    options = parser.parse_args()
    began, differing = time.monotonic(), 0
    kinds: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        pair = pairs.start("members", Path(directory) / "members")
        try:
            with two_sides(pair) as sides:
                for seed in range(options.seed, options.seed + options.histories):
                    history = History(seed, sides)
                    kinds[history.kind] += 1
                    try:
                        history.play()
                    except AssertionError as difference:
                        differing += 1
                        print(f"seed {seed} differs:\n{difference}\n", flush=True)
                    answers += history.answers
                    if (seed + 1) % EVERY == 0:
                        print(f"{seed + 1}: {time.monotonic() - began:.0f} s", flush=True)
        finally:
            pair.stop()
    for answer, count in sorted(answers.items()):
        print(f"{count:8} {answer}")
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(
        f"{found}: {answers.total()} answers, {differing} histories differ, {time.monotonic() - began:.0f} s"
    )
    raise SystemExit(bool(differing))


if __name__ == "__main__":
    main()
