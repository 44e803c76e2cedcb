"""Reads the options of `kshim plan`: settings, and the steps of a deployment. Raises UsageError."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

import click

from kshim.cli.durations import duration_ms
from kshim.plan.deployment import Crash, RollingRestart, Scale, Step
from kshim.plan.setting import SERVES, BrokerKind, ClientKind, Protocol, Setting

BEGINS_MS: Final = 60_000
"""When a rolling restart begins, if the user does not say it, in ms."""
STATIC: Final = "static"
FIRST_WORDS: Final = (*(each.value for each in Protocol), STATIC)
DEFAULT_SETTINGS: Final = ("eager", STATIC, "cooperative", "consumer")

E = TypeVar("E", bound=StrEnum)


def _one_of(kind: type[E], text: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise click.UsageError(f"{text!r} is none of {', '.join(kind)}") from None


_VALUES: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "session": ("session_ms", duration_ms),
    "heartbeat": ("heartbeat_ms", duration_ms),
    "max-poll": ("rebalance_ms", duration_ms),
    "processing": ("processing_ms", duration_ms),
    "initial-delay": ("initial_delay_ms", duration_ms),
    "latency": ("latency_ms", duration_ms),
    "assignor": ("assignor", str),
    "client": ("client", partial(_one_of, ClientKind)),
    "broker": ("broker", partial(_one_of, BrokerKind)),
}
"""For each key of a setting: the field, and what reads its value."""


def settings_of(texts: Iterable[str], common: Setting) -> list[Setting]:
    """The settings, or those that are compared by default. common: the values of all."""
    chosen = tuple(texts)
    if chosen:
        return [_setting(text, common) for text in chosen]
    served = SERVES[common.client]
    return [_setting(text, common) for text in DEFAULT_SETTINGS if _protocol(text) in served]


def _protocol(first: str) -> Protocol:
    return Protocol.EAGER if first == STATIC else Protocol(first)


def _setting(text: str, common: Setting) -> Setting:
    first, *more = text.split(",")
    if first not in FIRST_WORDS:
        raise click.UsageError(f"--setting {text!r} begins with {first!r}: use {_either(FIRST_WORDS)}")
    changes: dict[str, Any] = {"protocol": _protocol(first)}
    for word in (first, *more) if first == STATIC else more:
        if word == STATIC:
            changes["is_static"] = True
            continue
        key, _, value = word.partition("=")
        if key not in _VALUES or not value:
            near = get_close_matches(key, _VALUES, 1)
            hint = (
                f"did you mean {near[0]}=?" if near else f"use static, or {_either(f'{k}=' for k in _VALUES)}"
            )
            raise click.UsageError(f"--setting {text!r} has {word!r}: {hint}")
        field, read = _VALUES[key]
        try:
            changes[field] = read(value)
        except click.UsageError as error:
            raise click.UsageError(f"--setting {text!r}, {key}: {error.message}") from None
    setting = common._replace(name=text, **changes)
    if fault := setting.fault():
        raise click.UsageError(f"--setting {text!r}: {fault}")
    return setting


def steps_of(given: Mapping[str, Any]) -> list[Step]:
    """The steps of the deployment, of the options' values."""
    down_ms, kills = given["down"], given["kill"]
    steps: list[Step] = [
        *(_restart(text, down_ms, kills) for text in given["rolling_restart"]),
        *map(_scale, given["scale"]),
        *map(_crash, given["crash"]),
    ]
    if not steps:
        raise click.UsageError(
            "nothing happens to the group: use --rolling-restart 10s, --scale 3:6@10m or --crash 1@5m"
        )
    for step in steps:
        if step.at_ms >= given["duration"]:
            raise click.UsageError(
                f"something is to happen after {step.at_ms / 1000:g} s, but --duration is "
                f"{given['duration'] / 1000:g} s: make it longer"
            )
    return steps


def _restart(text: str, down_ms: int, kills: bool) -> RollingRestart:
    every, at, begins = text.partition("@")
    every_ms = duration_ms(every)
    if not every_ms:
        raise click.UsageError(f"--rolling-restart {text!r} leaves no time: write 10s, or 10s@5m")
    return RollingRestart(duration_ms(begins) if at else BEGINS_MS, every_ms, down_ms, kills)


def _scale(text: str) -> Scale:
    numbers, at, begins = text.partition("@")
    before, colon, to = numbers.rpartition(":")
    if not at or not to.isdecimal() or (colon and not before.isdecimal()):
        raise click.UsageError(f"--scale {text!r} is not [FROM:]TO@AT: write 10@5m, or 4:10@5m")
    return Scale(duration_ms(begins), int(to), int(before) if colon else None)


def _crash(text: str) -> Crash:
    members, at, when = text.partition("@")
    begins, plus, back = when.partition("+")
    if not at or not members.isdecimal() or not int(members):
        raise click.UsageError(f"--crash {text!r} is not N@AT[+BACK]: write 1@5m, or 1@5m+30s")
    return Crash(duration_ms(begins), int(members), duration_ms(back) if plus else None)


def _either(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} or {last}"
