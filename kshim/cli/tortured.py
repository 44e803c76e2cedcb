"""Runs `kshim torture`: makes its settings of the options, plays the seeds, and prints the verdict."""

from __future__ import annotations

import random
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from kshim.cli.faults import fail
from kshim.cli.lines import print_line
from kshim.testing.running import NotStarted
from kshim.testing.tortures import play
from kshim.torture.choice import named_faults, needs_of, schedule_of
from kshim.torture.judgement import Finding, breaking, judge
from kshim.torture.outputs import cannot_fill
from kshim.torture.page import page
from kshim.torture.processes import CannotRun
from kshim.torture.promises import Judged, Output, Promise, cannot_show
from kshim.torture.run import Played
from kshim.torture.schedule import Schedule, WrongSchedule, impossible, read, shrunk, written
from kshim.torture.settings import Settings
from kshim.torture.stage import Refused
from kshim.torture.story import lines, told, verdict
from kshim.torture.unplayable import Unplayable

MOST_SEEDS = 1 << 16
HOLDS, BROKEN, INTERRUPTED = 0, 1, 130
SPACE_MS = 1500
"""How long a smaller schedule lasts after its last fault."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line, checked."""

    settings: Settings
    brokers: int
    properties: Mapping[str, str]
    show: Callable[[str], None]
    logs: Path | None

    def play(self, schedule: Schedule) -> Played:
        """Play one schedule. Exits with status 2 if the program cannot be tortured."""
        try:
            return play(
                self.settings,
                schedule,
                brokers=self.brokers,
                properties=self.properties,
                show=self.show,
                directory=self.logs,
            )
        except (Unplayable, CannotRun) as error:
            first, *said = str(error).splitlines()
            fail(first, *(f"  it said: {line}" for line in said), command="kshim torture")
        except Refused as error:
            fail(f"the server refused a step: {error}", command="kshim torture")
        except NotStarted as error:
            fail(str(error).splitlines()[-1], command="kshim torture")


def run_torture(command: Sequence[str], given: Mapping[str, Any]) -> NoReturn:
    """Play the seeds, print the verdict, and exit with its status."""
    for ends in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, _interrupt)
    options = _options(command, given)
    schedules = _schedules(options, given)
    for number, schedule in enumerate(schedules, 1):
        print_line(
            f"seed {schedule.seed}: {len(schedule.events)} faults in {schedule.duration_ms / 1000:g} s"
        )
        played = options.play(schedule)
        is_last = number == len(schedules)
        _keep(options, given, schedule, played)
        if played.is_interrupted:
            print_line("interrupted, so this is no verdict")
            _print(options, played)
            sys.exit(INTERRUPTED)
        bad = _bad(options, played)
        _print(options, played)
        if bad:
            _repeat(options, given, schedule, bad)
            sys.exit(BROKEN)
        if is_last:
            sys.exit(HOLDS)
    raise AssertionError("there is at least one schedule")


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


# ---- the options


def _options(command: Sequence[str], given: Mapping[str, Any]) -> Options:
    """The options, or exit with status 2."""
    if not command:
        raise click.UsageError(
            "name the program to torture after --: kshim torture --report -- python worker.py"
        )
    if given["report"] and given["output"]:
        raise click.UsageError("give either --report or --output TOPIC: one of them judges the program")
    output = Output.REPORT if given["report"] else Output.TOPIC if given["output"] else Output.OFFSETS
    judged = Judged(Promise(given["promise"]), output, given["in_order"])
    why = cannot_show(judged, not given["no_group"]) or cannot_fill(given["value"])
    if why:
        raise click.UsageError(why)
    if given["pointer"] and not given["pointer"].startswith("/"):
        raise click.UsageError(
            f"--pointer {given['pointer']!r} is no JSON pointer: write one such as /order/number"
        )
    if given["output"] == given["topic"]:
        raise click.UsageError("--output has to be another topic than --topic")
    for name in ("page", "save_schedule"):
        if given[name] is not None and not given[name].absolute().parent.is_dir():
            raise click.UsageError(f"there is no directory {given[name].parent} for {given[name].name}")
    settings = Settings(
        command=command,
        judged=judged,
        start_s=given["start"] / 1000,
        settle_s=given["settle"] / 1000,
        partitions=given["partitions"],
        rate=given["rate"],
        group=given["group"],
        topic=given["topic"],
        output_topic=given["output"] or "output",
        pointer=given["pointer"],
        value=given["value"],
        has_group=not given["no_group"],
    )
    if given["logs"] is not None:
        given["logs"].mkdir(parents=True, exist_ok=True)
    show = (lambda _: None) if given["quiet"] else print_line
    return Options(settings, given["brokers"], _properties(given["properties"]), show, given["logs"])


def _properties(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--set {pair!r} is no KEY=VALUE, such as group.max.size=3")
        found[key.strip()] = value.strip()
    return found


def _schedules(options: Options, given: Mapping[str, Any]) -> list[Schedule]:
    """The schedules to play, or exit with status 2 if no program could survive one."""
    judged, brokers = options.settings.judged, options.brokers
    has = needs_of(judged, brokers, options.settings.has_group)
    try:
        if given["schedule_file"] is not None:
            found = [read(given["schedule_file"].read_text())]
        else:
            names = named_faults(given["faults"], judged, has)
            first = random.randrange(MOST_SEEDS) if given["seed"] is None else given["seed"]
            seeds = range(first, first + given["runs"])
            found = [schedule_of(seed, given["instances"], given["lasts"], names) for seed in seeds]
    except WrongSchedule as error:
        raise click.UsageError(str(error)) from None
    for schedule in found:
        if why := list(impossible(schedule, has, brokers, options.settings.settle_s)):
            more = f" (and {len(why) - 1} more like it)" if why[1:] else ""
            fail(f"{why[0]}{more}", command="kshim torture")
    return found


# ---- the verdict


def _bad(options: Options, played: Played) -> list[Finding]:
    judged = options.settings.judged
    return breaking(judge(played.evidence, judged), judged)


def _print(options: Options, played: Played) -> None:
    """Print the verdict and the stories."""
    judged, evidence = options.settings.judged, played.evidence
    findings = judge(evidence, judged)
    if not played.is_interrupted:
        for line in verdict(evidence, findings, judged):
            print_line(line)
        for one in told(evidence, findings, judged):
            print_line()
            for line in lines(one, evidence.began_ms):
                print_line(line)


def _keep(options: Options, given: Mapping[str, Any], schedule: Schedule, played: Played) -> None:
    """Save the schedule and the page, if the user wants them."""
    if given["save_schedule"] is not None:
        given["save_schedule"].write_text(written(schedule))
    if given["page"] is not None:
        judged = options.settings.judged
        findings = None if played.is_interrupted else judge(played.evidence, judged)
        shown = shlex.join(options.settings.command)
        given["page"].write_text(page(played.evidence, findings, judged, schedule, shown))
        print_line(f"the page is {given['page']}")


def _repeat(options: Options, given: Mapping[str, Any], schedule: Schedule, bad: Sequence[Finding]) -> None:
    """Say how to repeat the schedule, and shrink it if the user wants that."""
    print_line()
    print_line(f"repeat it with --seed {schedule.seed}, find a smaller schedule with --shrink")
    if not given["shrink"]:
        return
    anomalies = {finding.anomaly for finding in bad}

    def fails(smaller: Schedule) -> bool:
        played = options.play(_shortened(smaller))
        if played.is_interrupted:
            raise KeyboardInterrupt
        broken = bool(anomalies & {finding.anomaly for finding in _bad(options, played)})
        print_line(f"{_faults(smaller)}: {'broken' if broken else 'holds'}")
        return broken

    try:
        smallest = _shortened(shrunk(schedule, fails))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    print_line(f"a smallest schedule that breaks it has {_faults(smallest)}:")
    for event in smallest.events:
        print_line(f"  {event}")
    if given["save_schedule"] is not None:
        given["save_schedule"].write_text(written(smallest))


def _faults(schedule: Schedule) -> str:
    return "1 fault" if len(schedule.events) == 1 else f"{len(schedule.events)} faults"


def _shortened(schedule: Schedule) -> Schedule:
    """The schedule, quiet soon after its last fault."""
    last_ms = max((event.ends_ms for event in schedule.events), default=0)
    return schedule._replace(duration_ms=min(schedule.duration_ms, last_ms + SPACE_MS))
