"""Plays a schedule: starts the program and the producing, does what the events say, waits until it is quiet
and all is drained, and gathers the evidence.

One thread does everything, in the order of a queue of moments; others only read lines and produce.
"""

from __future__ import annotations

import heapq
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from kshim.torture.acts import Acts
from kshim.torture.evidence import Evidence, Happening, Input, Processed, Rebalanced
from kshim.torture.gathering import (
    assigned_in,
    begun_in,
    commits_in,
    fetched_in,
    from_outputs,
    from_reports,
    instance_of,
    listener_of,
    rebalances_in,
)
from kshim.torture.judgement import is_drained
from kshim.torture.outputs import looks_like_report, reported
from kshim.torture.processes import Instance, Pulse, end_all, now_ms
from kshim.torture.producing import Producing
from kshim.torture.promises import Output
from kshim.torture.schedule import Schedule
from kshim.torture.settings import Settings, variables
from kshim.torture.settling import Patience
from kshim.torture.stage import Note, Refused, Stage
from kshim.torture.unplayable import Unplayable, ended_at_once, never_joined, shows_nothing

TICK_S: Final = 0.01
LOOK_S: Final = 0.25
GRACE_S: Final = 0.5
"""How long a drained program goes on, so that records which come twice are seen."""
LOST_S: Final = 1.5
"""How long a program that has committed everything may take to process the rest."""
LAST_RECORDS: Final = 40
"""Records that are produced when it is quiet, so that a program which stands still is seen."""
MOST_STARTS: Final = 25
"""Starts of an instance that ends by itself again and again."""
RESTART_MS: Final = 400.0
BURY_S: Final = 1.0
LAST_WORDS: Final = 3
NOTES: Final = "notes.jsonl"
"""The file beside the instances' logs with all notes of the server."""


class Played(NamedTuple):
    """What became of a run."""

    evidence: Evidence
    is_interrupted: bool
    is_complete: bool
    """True if the program drained everything in time."""


class Run:
    """One run of one schedule; it is played once."""

    def __init__(
        self,
        settings: Settings,
        schedule: Schedule,
        stage: Stage,
        logs: Path,
        states: Path,
        show: Callable[[str], None] = lambda _: None,
    ) -> None:
        """logs: gets what the instances print, and the server's notes. states: gets a directory for each
        instance's own files. show: called with a line for each thing that happens.
        """
        self.settings, self.schedule, self.stage = settings, schedule, stage
        self.group, self.topic = settings.group, settings.topic
        self._logs, self._states, self._show = logs, states, show
        self.instances: dict[str, Instance] = {}
        self.producing = Producing(stage, settings.topic, settings.rate, settings.keys, settings.value)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._happened: list[Happening] = []
        self._reports: list[tuple[str, float, tuple[str, int, int]]] = []
        self._strange: list[str] = []
        self._starts: dict[str, int] = defaultdict(int)
        self._pulse = Pulse()
        self._acts = Acts(self)
        self._buried_s = 0.0
        self._began_ms = now_ms()
        self._quiet_ms = 0.0
        self._stopped_ms = inf

    # ---- what acts need

    def new_instance(self) -> Instance:
        """One more instance, with the next name."""
        name = f"c{len(self.instances) + 1}"
        state = self._states / name
        state.mkdir(parents=True)
        env = variables(self.settings, self.stage.bootstrap_of(listener_of(name)), name, state)
        instance = Instance(name, self.settings.command, env, self._logs, self._line)
        self.instances[name] = instance
        return instance

    def later(self, after_ms: float, do: Callable[[], None]) -> None:
        """Do something after so many ms."""
        heapq.heappush(self._queue, (time.monotonic() + after_ms / 1000, next(self._numbers), do))

    def happened(self, happening: Happening) -> None:
        """Keep and show what has happened."""
        self._happened.append(happening)
        self._show(f"{(happening.at_ms - self._began_ms) / 1000:7.3f} s  {happening.text}")

    # ---- the run

    def play(self) -> Played:
        """Play the schedule. Raises Unplayable, CannotRun. Ctrl-C ends the run, not the process."""
        is_interrupted = is_complete = False
        self._pulse.start()
        try:
            self._begin()
            self._disturb()
            is_complete = self._settle()
        except KeyboardInterrupt:
            is_interrupted = True
            self.happened(Happening(now_ms(), "the run was interrupted"))
        finally:
            self.producing.stop()
            self._stopped_ms = now_ms()
            late = end_all(list(self.instances.values()))
            self._pulse.stop()
        for name in late:
            self.happened(
                Happening(now_ms(), f"{name} did not end when it was asked to, and was killed", name)
            )
        evidence = self._evidence()
        if not is_interrupted and (why := shows_nothing(evidence, self.settings)):
            said = [line for each in self.instances.values() for line in each.last_words()[-LAST_WORDS:]]
            raise Unplayable("\n".join((why, *said)))
        return Played(evidence, is_interrupted, is_complete)

    def _begin(self) -> None:
        """Start everything, and wait until the group works."""
        self.stage.make_topic(self.settings.topic, self.settings.partitions)
        if self.settings.judged.output is Output.TOPIC:
            self.stage.make_topic(self.settings.output_topic, self.settings.partitions)
        self.producing.append(self.settings.keys)
        for _ in range(self.schedule.instances):
            self.new_instance().start()
        late = self._wait_until_joined()
        self._began_ms = now_ms()
        lacking = f", but {', '.join(late)}, which took too long" if late else ""
        self.happened(Happening(self._began_ms, f"all instances {self._takes_part}{lacking}"))
        self.producing.start()

    def _wait_until_joined(self) -> list[str]:
        """Wait until all instances take part, and return those that do not in time. Raises Unplayable if none
        does.
        """
        end_s = time.monotonic() + self.settings.start_s
        while True:
            taking_part, is_shared = self._taking_part(self.stage.notes())
            late = self.instances.keys() - taking_part
            if is_shared and (not late or time.monotonic() > end_s):
                return sorted(late)
            ended = [each for each in self.instances.values() if not each.runs]
            if ended:
                raise Unplayable(ended_at_once(ended[0].name, ended[0].status, ended[0].last_words()))
            if time.monotonic() > end_s:
                raise Unplayable(self._never_joined(self.stage.notes()))
            time.sleep(LOOK_S / 5)

    @property
    def _takes_part(self) -> str:
        return "have joined" if self.settings.has_group else "have fetched records"

    def _taking_part(self, notes: Sequence[Note]) -> tuple[set[str], bool]:
        """The instances that take part, and whether the topic is read. Without a group, an instance that
        has fetched takes part.
        """
        if not self.settings.has_group:
            fetching = {each.by for each in fetched_in(notes, self.topic)}
            return fetching, bool(fetching)
        assigned = list(assigned_in(notes, self.group, self.topic))
        return {each.by for each in assigned}, any(each.partitions for each in assigned)

    def _never_joined(self, notes: Sequence[Note]) -> str:
        return never_joined(
            self.settings,
            {instance_of(note["listener"]) for note in notes},
            [group for group in self.stage.group_ids() if group != self.group],
            any(note["what"] == "joined" and note["group"] == self.group for note in notes),
            [line for each in self.instances.values() for line in each.last_words()[-LAST_WORDS:]],
        )

    def _disturb(self) -> None:
        """Do what the events say."""
        acts = self._acts
        for event in self.schedule.events:
            self.later(event.at_ms, partial(acts.do, event))
        end_s = time.monotonic() + self.schedule.duration_ms / 1000
        while time.monotonic() < end_s or self._queue:
            self._step()
        self.producing.stop()
        if self.producing.failure is not None:
            self.happened(Happening(now_ms(), f"no more records were produced: {self.producing.failure}"))
        self.stage.mend()
        for each in list(self.instances.values())[: self.schedule.instances]:
            acts.start(each)
        self._quiet_ms = now_ms()
        self.happened(Happening(self._quiet_ms, "it is quiet; all has to be drained"))
        self.producing.append(LAST_RECORDS)

    def _step(self) -> None:
        """Do what is due, start again what ended by itself, or wait a moment."""
        if self._queue and self._queue[0][0] <= time.monotonic():
            _, _, do = heapq.heappop(self._queue)
            try:
                do()
            except Refused as refused:
                self.happened(Happening(now_ms(), f"a step was not possible: {refused}"))
            return
        self._start_again()
        if time.monotonic() - self._buried_s > BURY_S:
            self._acts.bury()
            self._buried_s = time.monotonic()
        time.sleep(TICK_S)

    def _start_again(self) -> None:
        """Start the instances that have ended by themselves, as a supervisor would."""
        for instance in self.instances.values():
            if instance.is_wanted and not instance.runs:
                instance.is_wanted = False
                self._starts[instance.name] += 1
                said = "; ".join(instance.last_words()[-1:])
                text = f"{instance.name} ended by itself with status {instance.status}{said and ': '}{said}"
                self.happened(Happening(now_ms(), text, instance.name))
                self._acts.end_session(instance, instance.started_ms)
                if self._starts[instance.name] <= MOST_STARTS:
                    self.later(RESTART_MS, partial(self._acts.start, instance))

    def _settle(self) -> bool:
        """Wait until all is drained. Return False if the time is over before that."""
        patience = Patience(self.settings.settle_s, time.monotonic())
        committed_s: float | None = None
        look_s = 0.0
        while not patience.is_over(time.monotonic()):
            self._step()
            if time.monotonic() < look_s:
                continue
            look_s = time.monotonic() + LOOK_S
            evidence = self._glance()
            patience.saw(_how_far(evidence), time.monotonic())
            if not is_drained(evidence):
                committed_s = None
                continue
            committed_s = committed_s or time.monotonic()
            waited_s = time.monotonic() - committed_s
            done = evidence.processed is None or _all_processed(evidence, evidence.processed)
            if waited_s >= (GRACE_S if done else LOST_S):
                return True
        return False

    # ---- what is left behind

    def _line(self, name: str, line: str, at_ms: float) -> None:
        """Take a line of a program's standard output."""
        if self.settings.judged.output is Output.REPORT and (place := reported(line)):
            self._reports.append((name, at_ms, place))
            return
        if self.settings.judged.output is Output.REPORT and looks_like_report(line):
            self._strange.append(f"{name} printed {line!r}; expected 'processed TOPIC PARTITION OFFSET'")
        with self.instances[name].log.open("a") as log:
            log.write(line + "\n")

    def _glance(self) -> Evidence:
        """The evidence that shows whether all is drained. All of it would take too long each time."""
        notes, inputs = self.stage.notes(), self.producing.inputs
        committed: Mapping[tuple[str, int], int] = {}
        with suppress(Refused):
            committed = self.stage.committed(self.group)
        return Evidence(
            began_ms=self._began_ms,
            quiet_ms=self._quiet_ms,
            ended_ms=now_ms(),
            inputs=inputs,
            processed=self._processed(inputs)[0],
            fetched=(),
            commits=(),
            assigned=list(assigned_in(notes, self.group, self.topic)),
            happened=tuple(self._happened),
            committed={at: offset for at, offset in committed.items() if at[0] == self.topic},
            partitions=self.settings.partitions,
        )

    def _evidence(self) -> Evidence:
        notes, inputs = self.stage.notes(), self.producing.inputs
        (self._logs / NOTES).write_text("".join(json.dumps(note) + "\n" for note in notes))
        processed, unknown = self._processed(inputs)
        committed: Mapping[tuple[str, int], int] = {}
        rebalances: Sequence[Rebalanced] = ()
        with suppress(Refused):
            committed = self.stage.committed(self.group)
            rebalances = list(rebalances_in(self.stage.rebalances_of(self.group), notes))
        return Evidence(
            began_ms=self._began_ms,
            quiet_ms=self._quiet_ms or now_ms(),
            ended_ms=now_ms(),
            inputs=inputs,
            processed=processed,
            fetched=list(fetched_in(notes, self.topic)),
            commits=list(commits_in(notes, self.group, self.topic)),
            assigned=list(assigned_in(notes, self.group, self.topic)),
            happened=tuple(self._happened),
            committed={at: offset for at, offset in committed.items() if at[0] == self.topic},
            unknown=[*self._strange, *unknown],
            rebalances=rebalances,
            begun=list(begun_in(notes, self.group, self.topic)),
            partitions=self.settings.partitions,
            stopped_ms=self._stopped_ms,
        )

    def _processed(self, inputs: Sequence[Input]) -> tuple[list[Processed] | None, list[str]]:
        if self.settings.judged.output is Output.REPORT:
            return from_reports(list(self._reports), inputs, self._pulse.late_ms)
        if self.settings.judged.output is Output.TOPIC:
            return from_outputs(self.stage.read(self.settings.output_topic), inputs, self.settings.pointer)
        return None, []


def _how_far(evidence: Evidence) -> int:
    """A number that rises with each offset that is committed, and each record that is processed first."""
    processed = {each.number for each in evidence.processed or ()}
    return sum(evidence.committed.values()) + len(processed)


def _all_processed(evidence: Evidence, processed: Sequence[Processed]) -> bool:
    unheard = evidence.unheard
    wanted = (each for each in evidence.inputs if not each.is_aborted and each.place[:2] not in unheard)
    return {each.number for each in wanted} <= {each.number for each in processed}
