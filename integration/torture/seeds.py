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
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner, Result

from docs.draw_torture import CLIENTS
from integration.torture.museum.pieces import PIECES, Piece
from integration.torture.playing import program
from kshim.cli.torture import torture

BROKEN_SEEDS = 5
HOLDS, BROKEN, NO_VERDICT = "holds", "broken", "no verdict"
INTERRUPTED = 130
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

    @property
    def label(self) -> str:
        """The program and its client, for a table."""
        return f"`{self.program}` ({CLIENTS[self.client]})"


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


class Runs:
    """The file of the runs, and a directory for each run that did not hold."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._file = directory / "runs.jsonl"

    def played(self) -> list[Played]:
        """The runs in the file, the oldest first."""
        if not self._file.exists():
            return []
        return [Played(**json.loads(line)) for line in self._file.read_text().splitlines()]

    def play(self, part: Part, seed: int) -> Played:
        """Play a run, append its line, and keep what it left behind if it does not hold."""
        kept = self._directory / f"{part.name}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        run = _torture(part, seed, kept)
        with self._file.open("a") as file:  # one short write, which no other process can split
            file.write(json.dumps(run._asdict()) + "\n")
        print(f"{run.name} {run.seed}: {run.verdict} {run.findings} ({run.seconds} s)", flush=True)
        if run.verdict == HOLDS:
            shutil.rmtree(kept)
        return run

    def play_until_found(self, part: Part) -> Played:
        """Play seeds until one breaks the promise."""
        for seed in range(1, BROKEN_SEEDS + 1):
            run = self.play(part, seed)
            if run.verdict == BROKEN:
                break
        return run


def _torture(part: Part, seed: int, kept: Path) -> Played:
    """Torture a program in this process, so that all its runs share one helper that starts servers."""
    options = (
        "--page",
        str(kept / "story.html"),
        "--logs",
        str(kept),
        "--save-schedule",
        str(kept / "s.json"),
    )
    command = program(part.client, part.program)
    began_s = time.monotonic()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(RUN_S)
    done = CliRunner().invoke(torture, ["-q", "--seed", str(seed), *part.options, *options, "--", *command])
    signal.alarm(0)
    is_interrupted = done.exit_code == INTERRUPTED or "Aborted!" in done.output
    if is_interrupted and time.monotonic() - began_s < RUN_S:
        raise KeyboardInterrupt
    (kept / "said.txt").write_text(done.output)
    findings, story = _findings(done.output)
    verdict = HOLDS if done.exit_code == 0 else BROKEN if findings else NO_VERDICT
    if verdict == NO_VERDICT:
        findings = _last_line(done)
    seconds = round(time.monotonic() - began_s, 1)
    return Played(part.name, seed, verdict, seconds, round(os.getloadavg()[0], 1), findings, story)


def _end_with_parent() -> None:
    """Interrupt this worker when the process that started it is gone: its run, then its wait for another."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def watch() -> None:
        while True:
            time.sleep(1)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _last_line(done: Result) -> str:
    """The last line that a torture without a verdict said."""
    return (done.output.strip() or repr(done.exception)).splitlines()[-1]


def _findings(said: str) -> tuple[str, str]:
    """What was found, from the verdict's first line, and the first line of the first story."""
    _, found, after = said.partition(" is broken: ")
    if not found:
        return "", ""
    findings = after.splitlines()[0].rpartition(" (of")[0]
    stories = after.split("\n\n")[1:]
    return findings, stories[0].splitlines()[0] if stories else ""


# ---- the tables


def last_runs(runs: Sequence[Played], part: Part) -> list[Played]:
    """The last run of each of the part's seeds."""
    return list({run.seed: run for run in runs if run.name == part.name}.values())


def found_table(runs: Sequence[Played]) -> str:
    """A row for each broken program that was found."""
    rows = ["| Broken program | Seeds | Seconds | Found | The first story |", "|---|---|---|---|---|"]
    for part in broken():
        mine = last_runs(runs, part)
        for run in (run for run in mine if run.verdict == BROKEN):
            seconds = sum(each.seconds for each in mine)
            rows.append(f"| {part.label} | {len(mine)} | {seconds:.0f} | {run.findings} | {run.story} |")
    return "\n".join(rows)


def held_table(runs: Sequence[Played]) -> str:
    """A row for each mended program that was played."""
    rows = [
        "| Mended program | Options | Holds | Seconds a run | Seeds that do not hold |",
        "|---|---|---|---|---|",
    ]
    for part in twins():
        if mine := last_runs(runs, part):
            held = sum(run.verdict == HOLDS for run in mine)
            other = ", ".join(f"{run.seed} ({run.verdict})" for run in mine if run.verdict != HOLDS)
            seconds = sum(run.seconds for run in mine) / len(mine)
            options = " ".join(part.options)
            rows.append(f"| {part.label} | `{options}` | {held} of {len(mine)} | {seconds:.0f} | {other} |")
    return "\n".join(rows)


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
    runs = Runs(given.directory)
    if given.table:
        print(found_table(runs.played()), held_table(runs.played()), sep="\n\n")
        return
    with ProcessPoolExecutor(given.at_once, get_context("spawn"), _end_with_parent) as pool:
        if given.broken:
            waiting = [pool.submit(runs.play_until_found, part) for part in chosen(broken(), given.words)]
        else:
            done = set() if given.again else {(run.name, run.seed) for run in runs.played()}
            seeds = sorted(set(given.again)) or range(given.first, given.first + given.seeds)
            wanted = [(part, seed) for part in chosen(twins(), given.words) for seed in seeds]
            waiting = [
                pool.submit(runs.play, part, seed) for part, seed in wanted if (part.name, seed) not in done
            ]
        for each in waiting:
            each.result()


if __name__ == "__main__":
    main()
