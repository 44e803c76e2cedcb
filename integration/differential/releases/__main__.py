"""Print what has changed between two releases of Apache Kafka.

`python -m integration.differential.releases --help` lists the options.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from integration import apache_kafka
from integration.apache_kafka.jars import fetch_class_path
from integration.differential.__main__ import run_of
from integration.differential.invented import AUTHORS, invent
from integration.differential.playing import pairs
from integration.differential.playing.run import Outcome, Rule, play_all, summary
from integration.differential.releases import definitions, members, served, stories
from integration.differential.releases.causes import Found, causes, explained_by

PLAYS = 6
"""How often each release is asked until both answer the same."""
AT_ONCE = 16
BATCH = 100


def heading(text: str, lines: Iterable[str]) -> None:
    print(f"\n## {text}\n")
    for line in lines:
        print(f"* {line}")
    print(flush=True)


def differing_configs(pair: pairs.Pair) -> set[str]:
    """Print the configs that differ, and return their names."""
    names = set()
    for title, (kind, name) in served.RESOURCES.items():
        old, new = (served.configs(each, kind, name) for each in pair.targets)
        heading(f"Configs of a {title}", served.config_changes(old, new))
        names |= {each for each in old.keys() | new.keys() if old.get(each) != new.get(each)}
    return names


def play(pair: pairs.Pair, of: str, numbers: Sequence[int], rule: Rule, at_once: int) -> None:
    """Print why the answers to invented histories differ."""
    found: list[tuple[str, Sequence[Found]]] = []
    outcomes: list[Outcome] = []
    began = time.monotonic()
    for start in range(0, len(numbers), BATCH):
        runs = [run_of(invent(number, of)) for number in numbers[start : start + BATCH]]
        played = asyncio.run(play_all(runs, {"plain": pair}, at_once, rule, PLAYS, are_releases=True))
        found += [
            (run.history.title, list(map(Found.of, outcome.untolerated))) for run, outcome in played.items()
        ]
        outcomes += played.values()
        print(f"{time.monotonic() - began:.0f} s, {of}: {summary(outcomes)}", file=sys.stderr)
    differing = sum(bool(differences) for _, differences in found)
    heading(
        f"Histories of {of}: {differing} of {len(found)} differ",
        [summary(outcomes), *map(str, causes(found))],
    )


@contextlib.contextmanager
def started(name: str, versions: Sequence[str]) -> Iterator[pairs.Pair]:
    """Both releases, with the settings of that pair."""
    old, new = (pairs.Program(each, apache_kafka.COMMAND, ("--version", each)) for each in versions)
    with tempfile.TemporaryDirectory() as directory:
        pair = pairs.start(name, Path(directory) / name, (old, new))
        try:
            yield pair
        finally:
            for server in (pair.apache_kafka, pair.kshim):
                server.kill()


def compare(versions: Sequence[str], options: argparse.Namespace) -> None:
    old, new = (definitions.definitions(fetch_class_path(version)) for version in versions)
    heading("Messages", definitions.changes(old, new))
    numbers = range(options.seed, options.seed + options.histories)
    with started("plain", versions) as pair:
        heading("APIs and features", served.changes(*map(served.apis_and_features, pair.targets)))
        configs = differing_configs(pair)
        if not options.no_stories:
            heading("Stories", map(str, causes(stories.told(pair, configs))))
        rule = explained_by(configs)
        for of in options.of:
            if of in AUTHORS:
                play(pair, of, numbers, rule, options.at_once)
    if members.SUBJECT in options.of:
        with started("members", versions) as pair:
            heading(f"Histories of {members.SUBJECT}", members.played(pair, numbers))


def main() -> None:
    subjects = [*AUTHORS, members.SUBJECT]
    parser = argparse.ArgumentParser(prog="integration.differential.releases", description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--of", nargs="*", choices=subjects, default=subjects, help="what to invent about")
    parser.add_argument("--no-stories", action="store_true", help="only compare what is invented")
    parser.add_argument("--histories", type=int, default=200, help="how many of each")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first history")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="how many at the same time")
    options = parser.parse_args()
    compare((options.old, options.new), options)


if __name__ == "__main__":
    main()
