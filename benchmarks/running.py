"""Runs a case: one round of each side in turn, so that a slow minute hits them all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks import flames
from benchmarks.cases import ALL, BOTH, Case
from benchmarks.generator import GeneratorFailed, Load, find, generate
from benchmarks.processor import Measured, memory_mib, reset_peak
from benchmarks.servers import KSHIM, UPSTREAM, Side, Target, all_serving

WARM_UP_S = 1.5
"""So long the load runs on a server before it counts."""


@dataclass(frozen=True)
class Series:
    """The figures of all rounds of one side under one load."""

    case: str
    load: str
    side: Side
    rounds: list[Measured]

    def values(self, figure: str) -> list[float]:
        return [each.figures[figure] for each in self.rounds if figure in each.figures]


@dataclass(frozen=True)
class Plan:
    """The user's options."""

    peer: str = ""
    """`apache-kafka`, `upstream`, an address, or "" to compare with nobody."""
    flush: str = ""
    """`commit`, `os`, `memory`, `both` or `all`; "": commit and os where it matters."""
    rounds: int = 3
    seconds: float = 3.0
    load: str = ""
    """Only loads with this in their name."""

    def loads(self, case: Case) -> dict[str, Load]:
        return {name: arguments for name, arguments in case.loads.items() if self.load in name}

    def sides(self, case: Case) -> list[Side]:
        """kshim, once or with both ways to flush, then the peer."""
        if self.peer == UPSTREAM:
            return [Side(KSHIM, is_in_front=True), Side(UPSTREAM)]
        policies = {"": case.flush, "both": BOTH, "all": ALL if case.flush == BOTH else case.flush}
        ours = [Side(KSHIM, flush) for flush in policies.get(self.flush, (self.flush,))]
        return [*ours, Side(self.peer)] if self.peer else ours


def run_alone(case: Case, plan: Plan) -> None:
    """Run a case that prints its own findings."""
    with _directory() as directory:
        find(case.function)(plan.sides(case), directory, case.settings, plan.rounds)


@dataclass(frozen=True)
class Failed:
    """A load that could not be measured to its end, and why."""

    load: str
    why: str


def run(name: str, case: Case, plan: Plan) -> Iterator[list[Series] | Failed]:
    """For each load the series of all sides. Raises ServerFailed."""
    sides = plan.sides(case)
    if case.servers == "own":
        sides = [side for side in sides if side.is_started_here]
    with _directory() as directory:
        runs = {"shared": _shared, "new": _new, "own": _own}[case.servers]
        for load, found in runs(case, sides, plan, directory):
            if isinstance(found, Failed):
                yield found
            else:
                yield [Series(name, load, side, found[side]) for side in sides]


def draw_flames(name: str, case: Case, plan: Plan, into: Path) -> Iterator[Path]:
    """For each load, and each way to flush, a flame graph of a server of its own. Raises ServerFailed."""
    into.mkdir(parents=True, exist_ok=True)
    for load, arguments in plan.loads(case).items():
        for side in plan.sides(case):
            if side.kind != KSHIM:
                continue
            with _directory() as directory:
                sampled = replace(side, samples=directory / "stacks")
                with all_serving([sampled], directory, case.settings) as targets:
                    generate(case.function, targets[sampled], arguments, plan.seconds)
                words = f"{name} {load} {side.flush}".replace(",", "").split()
                picture = into / f"{'-'.join(words)}.svg"
                flames.draw(directory / "stacks", picture, f"{name}, {load}, flush.policy={side.flush}")
            yield picture


Rounds = dict[Side, list[Measured]]
Found = Iterator[tuple[str, Rounds | Failed]]


def _rounds(
    load: str, sides: list[Side], rounds: int, measure: Callable[[Side], Measured]
) -> Rounds | Failed:
    found: Rounds = {side: [] for side in sides}
    try:
        for side in turns(sides, rounds, load):
            found[side].append(measure(side))
    except (GeneratorFailed, RuntimeError, OSError) as error:
        return Failed(load, f"{side.label}: {error}")
    return found


def _shared(case: Case, sides: list[Side], plan: Plan, directory: Path) -> Found:
    with all_serving(sides, directory, case.settings) as targets:

        def measure(side: Side, arguments: Load, seconds: float) -> Measured:
            return _measured(case.function, targets[side], arguments, seconds)

        for load, arguments in plan.loads(case).items():
            if case.warm_up:
                seconds = min(plan.seconds, WARM_UP_S)
                _rounds(load, sides, 1, partial(measure, arguments=arguments, seconds=seconds))
            timed = partial(measure, arguments=arguments, seconds=plan.seconds)
            yield load, _rounds(load, sides, plan.rounds, timed)


def _new(case: Case, sides: list[Side], plan: Plan, directory: Path) -> Found:
    def measure(side: Side, arguments: Load) -> Measured:
        with (
            tempfile.TemporaryDirectory(dir=directory) as own,
            all_serving([side], Path(own), case.settings) as targets,
        ):
            return _measured(case.function, targets[side], arguments, plan.seconds)

    for load, arguments in plan.loads(case).items():
        yield load, _rounds(load, sides, plan.rounds, partial(measure, arguments=arguments))


def _own(case: Case, sides: list[Side], plan: Plan, directory: Path) -> Found:
    def measure(side: Side, arguments: Load) -> Measured:
        measured: Measured = find(case.function)(side, directory / side.folder, case.settings, arguments)
        return measured

    for load, arguments in plan.loads(case).items():
        yield load, _rounds(load, sides, plan.rounds, partial(measure, arguments=arguments))


def turns(sides: list[Side], rounds: int, load: str = "") -> Iterator[Side]:
    """Whose turn it is: each round all sides, every other one in the opposite order. A terminal shows it."""
    with Console(stderr=True).status("") as status:
        for number in range(rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                status.update(f"{load}: {side.label}, round {number + 1} of {rounds}")
                yield side


def _measured(function: str, target: Target, load: Load, seconds: float) -> Measured:
    if not target.pid:
        return generate(function, target, load, seconds)
    reset_peak(target.pid)
    measured = generate(function, target, load, seconds)
    return replace(measured, peak_mib=memory_mib(target.pid, "VmHWM"))


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kshim-benchmarks-") as directory:
        yield Path(directory)
