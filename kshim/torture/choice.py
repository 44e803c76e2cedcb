"""Chooses the faults of a run: those that fit its promise, its brokers and its instances. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from kshim.torture.faults import ABORTED, FAULTS, Needs, names_for
from kshim.torture.promises import Judged, Promise
from kshim.torture.schedule import Schedule, WrongSchedule, draw

LEAST_MS: Final = 1000


def schedule_of(seed: int, instances: int, duration_ms: int, names: Sequence[str]) -> Schedule:
    """The schedule of a seed. Raises WrongSchedule if there is no fault to draw, or no time for it."""
    if duration_ms < LEAST_MS:
        raise WrongSchedule(f"a run has to be disturbed for {LEAST_MS / 1000:g} s or more")
    if not names:
        raise WrongSchedule("no fault is left to play; `kshim torture --list` names them all")
    return draw(seed, instances, duration_ms, names)


def needs_of(judged: Judged, brokers: int, has_group: bool) -> Needs:
    """What a run has, of what faults need."""
    has = Needs.BROKERS if brokers > 1 else Needs.NOTHING
    if has_group:
        has |= Needs.GROUP
    return has if judged.in_order else has | Needs.NO_ORDER


def named_faults(text: str | None, judged: Judged, has: Needs) -> list[str]:
    """The faults that a text such as "kill,freeze" or "-join" names; None for those that fit the promise.

    Raises WrongSchedule for an unknown name.
    """
    fitting = [name for name in names_for(has) if name != ABORTED or judged.promise is Promise.EXACTLY_ONCE]
    named = [name.strip() for name in (text or "").split(",") if name.strip()]
    for name in named:
        if name.removeprefix("-") not in FAULTS:
            near = get_close_matches(name.removeprefix("-"), FAULTS, 3, 0.4) or list(FAULTS)
            raise WrongSchedule(f"no fault is called {name!r}; write one of {', '.join(near)}")
    chosen = [name for name in named if not name.startswith("-")] or fitting
    return [name for name in chosen if f"-{name}" not in named]
