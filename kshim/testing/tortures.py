"""Tortures a program that consumes, from a test; docs/torture.md says what that is.

from kshim.testing import Work, torture

def worker(work: Work) -> None:
    consumer = KafkaConsumer(work.topic, bootstrap_servers=work.bootstrap, group_id=work.group, …)
    while not work.over.is_set():
        …
        work.processed(record.topic, record.partition, record.offset)

def test_our_worker_loses_nothing() -> None:
    torture(worker, seed=1)
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from kshim.testing.arguments import waiting
from kshim.testing.stage import stage_server
from kshim.testing.worker import Work, command_of
from kshim.torture.choice import named_faults, needs_of, schedule_of
from kshim.torture.gathering import listener_of
from kshim.torture.judgement import Finding, breaking, judge
from kshim.torture.outputs import POINTER, VALUE, cannot_fill
from kshim.torture.page import page as drawn_page
from kshim.torture.promises import Judged, Output, Promise, cannot_show
from kshim.torture.run import Played, Run
from kshim.torture.schedule import Schedule, WrongSchedule, impossible, read
from kshim.torture.settings import Settings
from kshim.torture.story import lines, told, verdict
from kshim.torture.unplayable import Unplayable

__all__ = ["PromiseBroken", "Tortured", "Unplayable", "play", "torture"]

BROKERS = 3
MOST_SEEDS = 1 << 16


class PromiseBroken(AssertionError):
    """The program broke its promise. str() is the story, and says which seed repeats the schedule."""

    def __init__(self, text: str, tortured: Tortured) -> None:
        super().__init__(text)
        self.tortured = tortured


class Tortured(NamedTuple):
    """What became of a torture."""

    seed: int
    records: int
    """How many records the program had to process."""
    findings: Sequence[Finding]
    """All anomalies, also those that the promise allows."""
    happened: Sequence[str]
    """What was done, in words."""


@waiting
def torture(
    consumer: Sequence[str] | Callable[[Work], None],
    *,
    promise: Literal["at-least-once", "exactly-once", "at-most-once"] = "at-least-once",
    output: Literal["report", "topic", "offsets"] = "report",
    in_order: bool = False,
    seed: int | None = None,
    schedule: Schedule | Path | None = None,
    seconds: float = 10,
    start_s: float = 20,
    settle_s: float = 15,
    has_group: bool = True,
    instances: int = 3,
    partitions: int = 4,
    brokers: int = BROKERS,
    rate: int = 60,
    faults: Sequence[str] | None = None,
    pointer: str = POINTER,
    value: str = VALUE,
    environment: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    page: Path | None = None,
) -> Tortured:
    """Torture a program, and raise PromiseBroken if it breaks its promise.

    consumer: a command, or a function at the top of a module, which each instance runs in a process of
    its own. output: what judges it: "report", lines or calls of `Work.processed`; "topic", records in
    KSHIM_OUTPUT; "offsets", its commits. seed: repeats a schedule; None for a new one. faults: the names
    of some, as `kshim torture --list` prints them; None for all that fit. schedule: in place of a seed,
    faults, seconds and instances, a schedule, or the file that `kshim torture --save-schedule` wrote.
    start_s: the time for all instances to join; settle_s: how long it may get no further at the end,
    until all is drained. has_group: False for a program that joins none. rate: records per second. value:
    the template of their values. page: where to save the story as HTML. Raises Unplayable if the program
    never takes part, ValueError.
    """
    judged = Judged(Promise(promise), _OUTPUTS[output], in_order)
    if why := cannot_show(judged, has_group) or cannot_fill(value):
        raise ValueError(why)
    settings = Settings(
        command=command_of(consumer),
        judged=judged,
        start_s=start_s,
        settle_s=settle_s,
        has_group=has_group,
        partitions=partitions,
        rate=rate,
        pointer=pointer,
        value=value,
        environment=environment or {},
    )
    has = needs_of(judged, brokers, has_group)
    if schedule is None:
        names = named_faults(None if faults is None else ",".join(faults), judged, has)
        number = random.randrange(MOST_SEEDS) if seed is None else seed
        chosen, again = schedule_of(number, instances, round(seconds * 1000), names), f"seed={number}"
    else:
        chosen = read(schedule.read_text()) if isinstance(schedule, Path) else schedule
        again = f"schedule={schedule!r}"
    for why in impossible(chosen, has, brokers, settle_s):
        raise WrongSchedule(why)
    played = play(settings, chosen, brokers=brokers, properties=properties)
    return _judged(settings, chosen, played, page, again)


_OUTPUTS = {"report": Output.REPORT, "topic": Output.TOPIC, "offsets": Output.OFFSETS}


def _judged(
    settings: Settings, schedule: Schedule, played: Played, page: Path | None, again: str
) -> Tortured:
    """What became of a torture. Raises PromiseBroken. again: the argument that repeats the schedule."""
    if played.is_interrupted:
        raise KeyboardInterrupt
    evidence, judged = played.evidence, settings.judged
    findings = judge(evidence, judged)
    if page is not None:
        page.write_text(drawn_page(evidence, findings, judged, schedule, " ".join(settings.command)))
    records = sum(not each.is_aborted for each in evidence.inputs)
    happened = [each.text for each in evidence.happened]
    tortured = Tortured(schedule.seed, records, findings, happened)
    if breaking(findings, judged):
        text = [*verdict(evidence, findings, judged), ""]
        for one in told(evidence, findings, judged):
            text += [*lines(one, evidence.began_ms), ""]
        raise PromiseBroken("\n".join([*text, f"repeat it with {again}"]), tortured)
    return tortured


def play(
    settings: Settings,
    schedule: Schedule,
    *,
    brokers: int = BROKERS,
    properties: Mapping[str, str] | None = None,
    show: Callable[[str], None] = lambda _: None,
    directory: Path | None = None,
) -> Played:
    """Play one schedule with a server of its own. Raises Unplayable, CannotRun, NotStarted.

    show: called with a line for each thing that happens. directory: keeps the instances' logs and the
    server's notes.
    """
    joins = sum(event.fault == "join" for event in schedule.events)
    names = [listener_of(f"c{number}") for number in range(1, schedule.instances + joins + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="kshim-torture-") as scratch,
        stage_server(brokers, properties or {}, names) as stage,
    ):
        own = Path(scratch)
        return Run(settings, schedule, stage, directory or own, own / "states", show).play()
