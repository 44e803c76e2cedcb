"""Plays programs of the museum for many seeds, several at a time, and writes a line of JSON for each run.

    python -m integration.torture.seeds --directory DIR [WORD…] [--seeds 50] [--at-once 3] [--broken]
    python -m integration.torture.seeds --directory DIR --table

The programs whose names have one of the words are played, in the order of the words; without words, all are.
DIR/runs.jsonl gets the lines; a run that it has already is not played again, unless `--again` names its seed.
A run that does not hold leaves its page, its logs, its schedule and what the torture said in DIR/NAME-SEED.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from integration.torture.museum.pieces import PIECES, Piece
from integration.torture.playing import program, tortured

BROKEN_SEEDS = 5
HOLDS, BROKEN, NO_VERDICT = "holds", "broken", "no verdict"
VERDICTS = {0: HOLDS, 1: BROKEN}
RUN_S = 240


class Played(NamedTuple):
    """One run: a line of the file."""

    name: str
    seed: int
    verdict: str
    seconds: float
    load: float
    """The machine's load when the run ended."""
    findings: str
    story: str
    """The first line of the first record's story."""


class Part(NamedTuple):
    """A program, and how it is tortured."""

    name: str
    client: str
    program: str
    options: tuple[str, ...]


def twins() -> list[Part]:
    """The mended programs. One that stands beside several broken ones is played once for each torture."""
    first = {(each.client, each.mended, each.options): each for each in reversed(PIECES)}
    parts = {
        key: Part(_twin_name(each), each.client, each.mended, each.options) for key, each in first.items()
    }
    return list(reversed(parts.values()))


def _twin_name(piece: Piece) -> str:
    return f"{piece.client}-{piece.mended}-for-{piece.broken}"


def broken() -> list[Part]:
    """The broken programs."""
    return [Part(each.name, each.client, each.broken, each.options) for each in PIECES]


def chosen(parts: Sequence[Part], words: Sequence[str]) -> list[Part]:
    """The parts whose names have one of the words, in the order of the words; without words, all."""
    found = {part.name: part for word in words or [""] for part in parts if word in part.name}
    return list(found.values())


class Playing:
    """Plays runs, and keeps their lines."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._file = directory / "runs.jsonl"
        self._lock = threading.Lock()

    def played(self) -> list[Played]:
        """The runs in the file, the oldest first."""
        if not self._file.exists():
            return []
        return [Played(**json.loads(line)) for line in self._file.read_text().splitlines()]

    def play(self, part: Part, seed: int) -> Played:
        """Play a run, write its line, and keep what it left behind if it does not hold."""
        kept = self._directory / f"{part.name}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        run = _torture(part, seed, kept)
        with self._lock, self._file.open("a") as file:
            file.write(json.dumps(run._asdict()) + "\n")
        print(f"{run.name} {run.seed}: {run.verdict} {run.findings} ({run.seconds} s)", flush=True)
        if run.verdict == HOLDS:
            shutil.rmtree(kept)
        return run

    def play_until_found(self, part: Part) -> None:
        """Play seeds until one breaks the promise."""
        for seed in range(1, BROKEN_SEEDS + 1):
            if self.play(part, seed).verdict == BROKEN:
                return


def _torture(part: Part, seed: int, kept: Path) -> Played:
    options = (
        "--page",
        str(kept / "story.html"),
        "--logs",
        str(kept),
        "--save-schedule",
        str(kept / "s.json"),
    )
    began_s = time.monotonic()
    try:
        done = tortured(
            program(part.client, part.program), "--seed", str(seed), *part.options, *options, timeout_s=RUN_S
        )
        said, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        said, status = f"not over in {RUN_S} s\n{error.stdout!r}", 2
    (kept / "said.txt").write_text(said)
    findings, story = _findings(said) if status in VERDICTS else (said.strip().splitlines()[-1], "")
    seconds = round(time.monotonic() - began_s, 1)
    verdict = VERDICTS.get(status, NO_VERDICT)
    return Played(part.name, seed, verdict, seconds, round(os.getloadavg()[0], 1), findings, story)


def _findings(said: str) -> tuple[str, str]:
    """What was found, from the verdict's first line, and the first line of the first story."""
    _, found, after = said.partition(" is broken: ")
    if not found:
        return "", ""
    findings = after.splitlines()[0].rpartition(" (of")[0]
    stories = after.split("\n\n")[1:]
    return findings, stories[0].splitlines()[0] if stories else ""


# ---- the tables


def table(runs: Sequence[Played]) -> Iterator[str]:
    """The last result of each seed, by program."""
    last = {(run.name, run.seed): run for run in runs}
    yield "| Broken program | Seeds until found | Seconds | Found | The first story begins |"
    yield "|---|---|---|---|---|"
    for part in broken():
        mine = [run for (name, _), run in last.items() if name == part.name]
        if found := [run for run in mine if run.verdict == BROKEN]:
            seconds = sum(run.seconds for run in mine)
            yield f"| `{part.name}` | {len(mine)} | {seconds:.0f} | {found[0].findings} | {found[0].story} |"
    yield ""
    yield "| Mended program | Holds | Seconds a run | Broken seeds |"
    yield "|---|---|---|---|"
    for part in twins():
        mine = [run for (name, _), run in last.items() if name == part.name]
        if mine:
            held = sum(run.verdict == HOLDS for run in mine)
            bad = ", ".join(str(run.seed) for run in mine if run.verdict != HOLDS)
            seconds = sum(run.seconds for run in mine) / len(mine)
            yield f"| `{part.name}` | {held} of {len(mine)} | {seconds:.0f} | {bad} |"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("words", nargs="*", metavar="WORD")
    options.add_argument("--directory", type=Path, required=True)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    options.add_argument(
        "--again", type=int, nargs="+", default=[], help="seeds to play again, and no others"
    )
    options.add_argument("--at-once", type=int, default=3)
    options.add_argument(
        "--broken", action="store_true", help="play the broken programs, until each is found"
    )
    options.add_argument("--table", action="store_true", help="print what was played, and play nothing")
    given = options.parse_args()
    playing = Playing(given.directory)
    if given.table:
        print("\n".join(table(playing.played())))
        return
    with ThreadPoolExecutor(given.at_once) as pool:
        if given.broken:
            list(pool.map(playing.play_until_found, chosen(broken(), given.words)))
            return
        done = set() if given.again else {(run.name, run.seed) for run in playing.played()}
        seeds = given.again or range(given.first, given.first + given.seeds)
        runs = [
            (part, n) for part in chosen(twins(), given.words) for n in seeds if (part.name, n) not in done
        ]
        list(pool.map(playing.play, *zip(*runs, strict=True)) if runs else ())


if __name__ == "__main__":
    main()
