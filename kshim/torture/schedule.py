"""What is done in a run, and when: drawn from a seed, checked, written down and made smaller. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from kshim.torture.faults import FAULTS, Needs

EVENTS_PER_S: Final = 1.4
LEAST_EVENTS: Final = 3
LEAST_SETTLE_S: Final = 2.0
CHOICES: Final = 1 << 16


class Event(NamedTuple):
    """One fault at one moment. Times are ms after all instances have their partitions."""

    at_ms: int
    fault: str
    instance: int = 0
    """The instance that is struck, counted from 1; 0 for a fault of the server or the group."""
    lasts_ms: int = 0
    choice: int = 0
    """Chooses the request, the broker, or the partition: taken modulo how many there are."""

    @property
    def ends_ms(self) -> int:
        return self.at_ms + self.lasts_ms

    def __str__(self) -> str:
        target = f" c{self.instance}" if self.instance else ""
        lasts = f", for {self.lasts_ms / 1000:.1f} s" if self.lasts_ms else ""
        return f"{self.at_ms / 1000:6.1f} s  {self.fault}{target}{lasts}"


class Schedule(NamedTuple):
    """All that is done in a run."""

    seed: int
    instances: int
    duration_ms: int
    events: tuple[Event, ...]


class WrongSchedule(ValueError):
    """A schedule cannot be played, or no program could survive it. str() is one line for the user."""


def draw(seed: int, instances: int, duration_ms: int, names: Sequence[str]) -> Schedule:
    """The schedule of a seed: the same arguments give the same schedule.

    Each fault is drawn once before any comes again, the heavier ones first and more often.
    """
    chance = Random(f"{seed}/{instances}/{duration_ms}")
    count = max(LEAST_EVENTS, round(duration_ms / 1000 * EVENTS_PER_S)) if names else 0
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += _shuffled(chance, names)
    times = sorted(chance.randrange(duration_ms) for _ in range(count))
    chosen = drawn[:count]
    chance.shuffle(chosen)
    events = (
        _event(chance, at_ms, name, instances, duration_ms) for at_ms, name in zip(times, chosen, strict=True)
    )
    return Schedule(seed, instances, duration_ms, tuple(events))


def _shuffled(chance: Random, names: Sequence[str]) -> list[str]:
    """The names in an order in which heavy ones tend to stand in front, and the heaviest come twice."""
    heavy = [name for name in names if FAULTS[name].weight > 2]
    keyed = [(chance.random() ** (1 / FAULTS[name].weight), name) for name in (*names, *heavy)]
    return [name for _, name in sorted(keyed, reverse=True)]


def _event(chance: Random, at_ms: int, name: str, instances: int, duration_ms: int) -> Event:
    fault = FAULTS[name]
    shortest, longest = fault.lasts_ms
    lasts_ms = min(chance.randint(shortest, longest), max(duration_ms - at_ms, shortest))
    instance = chance.randint(1, instances) if fault.is_of_instance else 0
    return Event(at_ms, name, instance, lasts_ms, chance.randrange(CHOICES))


# ---- what no program could survive


def impossible(schedule: Schedule, has: Needs, brokers: int, settle_s: float) -> Iterator[str]:
    """Say why no program could keep its promise in this schedule, before it is played."""
    if settle_s < LEAST_SETTLE_S:
        yield f"--settle has to be {LEAST_SETTLE_S:g} s or more: a group that lost a member needs that long"
    for event in schedule.events:
        fault = FAULTS.get(event.fault)
        if fault is None:
            yield f"no fault is called {event.fault!r}; `kshim torture --list` names them all"
            continue
        at = f"{event.fault} at {event.at_ms / 1000:g} s"
        if fault.needs & Needs.BROKERS & ~has:
            yield f"{at}: with {brokers} broker(s) nobody could reach the group: give --brokers 2 or more"
        if fault.needs & Needs.GROUP & ~has:
            yield f"{at}: the program joins no group, so nothing would happen to it"
        if fault.needs & Needs.NO_ORDER & ~has:
            yield f"{at}: a key's records move to another partition, so no program could keep their order"
        if event.at_ms < 0 or event.lasts_ms < 0:
            yield f"{at}: a time has to be 0 or more"
        if event.ends_ms > schedule.duration_ms + fault.lasts_ms[1]:
            yield (
                f"{at}: it lasts until {event.ends_ms / 1000:g} s, but the run is quiet from "
                f"{schedule.duration_ms / 1000:g} s on"
            )
        if fault.is_of_instance and not 1 <= event.instance <= schedule.instances:
            yield f"{at}: there is no instance c{event.instance}; there are {schedule.instances}"


# ---- written down


def written(schedule: Schedule) -> str:
    """The schedule as JSON, an event a line, for `--schedule FILE`."""
    events = ",\n    ".join(json.dumps(event._asdict()) for event in schedule.events)
    head = ", ".join(f'"{name}": {getattr(schedule, name)}' for name in ("seed", "instances", "duration_ms"))
    return f'{{{head},\n  "events": [\n    {events}\n  ]}}\n'


def read(text: str) -> Schedule:
    """Read what `written` wrote. Raises WrongSchedule."""
    try:
        value: Any = json.loads(text)
        events = tuple(sorted(Event(**each) for each in value["events"]))
        numbers = [value[name] for name in ("seed", "instances", "duration_ms")]
    except (ValueError, TypeError, KeyError) as error:
        raise WrongSchedule(f"is no schedule, as --save-schedule writes it: {error}") from None
    of_ints = (event._replace(fault="") for event in events)
    if not all(isinstance(n, int) for n in (*numbers, *(n for each in of_ints for n in each if n != ""))):
        raise WrongSchedule("is no schedule: its times and numbers have to be integers")
    seed, instances, duration_ms = numbers
    return Schedule(seed, instances, duration_ms, events)


# ---- made smaller


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Find a schedule with as few events as possible that still fails (delta debugging).

    fails: plays a schedule, and returns True if the promise is broken again.
    """
    nothing = schedule._replace(events=())
    if schedule.events and fails(nothing):
        return nothing
    parts = 2
    while len(schedule.events) > 1:
        smaller = next((each for each in _without(schedule, parts) if fails(each)), None)
        if smaller is not None:
            schedule, parts = smaller, max(2, parts - 1)
        elif parts < len(schedule.events):
            parts = min(len(schedule.events), parts * 2)
        else:
            break
    return schedule


def _without(schedule: Schedule, parts: int) -> Iterator[Schedule]:
    """The schedule without each of so many parts of its events."""
    events, count = schedule.events, len(schedule.events)
    parts = min(parts, count)
    for number in range(parts):
        first, last = count * number // parts, count * (number + 1) // parts
        yield schedule._replace(events=events[:first] + events[last:])
