"""A fault as a value: an action, and the requests that it strikes.

Users give it as a JSON object: {"api": "Heartbeat", "error": "NOT_COORDINATOR", "group": "g", "times": 2}.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from kshim.api.api_versions import ANNOUNCED
from kshim.faults.named import Kind, names
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode

HOUR_MS = 60 * 60 * 1000
BEFORE, AFTER = "before", "after"


class WrongFault(Exception):
    """The description of a fault is not valid. str() is one line that says why, and what would be right."""


class Error(NamedTuple):
    """The request is answered with an error, without being performed."""

    code: ErrorCode

    def __str__(self) -> str:
        return f"error {self.code.name}"


class Delay(NamedTuple):
    """The request is performed at once, and answered later, as by a broker with a slow disk or replica."""

    ms: int

    def __str__(self) -> str:
        return f"delay {self.ms} ms"


class Drop(NamedTuple):
    """The request is performed, but neither it nor any later request on its connection is answered."""

    def __str__(self) -> str:
        return "drop"


class Close(NamedTuple):
    """The connection is closed instead of an answer."""

    performs: bool
    """True if the request is performed before the connection is closed."""

    def __str__(self) -> str:
        return f"close {AFTER if self.performs else BEFORE}"


class Stall(NamedTuple):
    """The connection reads and sends nothing for a time. Then the request is performed."""

    ms: int

    def __str__(self) -> str:
        return f"stall {self.ms} ms"


class Slow(NamedTuple):
    """The request and its answer take as long as their bytes would on a slow connection. Until then, the
    connection reads no further request.
    """

    bytes_per_s: int

    def __str__(self) -> str:
        return f"{self.bytes_per_s} bytes/s"


Action = Error | Delay | Drop | Close | Stall | Slow
CONDITIONS: Final = ("api", "client_id", "not_client_id", *(kind.value for kind in Kind))
ACTIONS: Final = ("error", "delay_ms", "drop", "close", "stall_ms", "bytes_per_s")
LIMITS: Final = {
    "delay_ms": (1, HOUR_MS),
    "stall_ms": (1, HOUR_MS),
    "bytes_per_s": (1, 1 << 30),
    "nth": (1, 1 << 31),
    "times": (1, 1 << 31),
    "for_ms": (1, 24 * HOUR_MS),
    "seed": (0, 1 << 53),
}
"""The smallest and the largest value of each number."""
KEYS: Final = (*ACTIONS, *CONDITIONS, "nth", "times", "once", "probability", "seed", "for_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An action, and conditions for the requests that it strikes. None means no condition."""

    action: Action
    api: ApiKey | None = None
    client_id: str | None = None
    not_client_id: str | None = None
    group: str | None = None
    topic: str | None = None
    member: str | None = None
    nth: int = 1
    """The first request to be struck, counted from 1 among those that fit."""
    times: int | None = None
    probability: float = 1.0
    seed: int | None = None
    """Makes `probability` repeatable; None for a random seed."""
    for_ms: int | None = None

    @property
    def target(self) -> str:
        """The conditions in words."""
        said = [self.api.title if self.api is not None else "any request"]
        for name in CONDITIONS[1:]:
            value = getattr(self, name)
            if value is not None:
                said.append(f"{name.replace('_', ' ')} {value}")
        return ", ".join(said)

    @property
    def when(self) -> str:
        """When and how often the fault strikes, in words; empty for always."""
        said = []
        if self.nth > 1:
            said.append(f"from request {self.nth} on")
        if self.times is not None:
            said.append(f"{self.times} time{'s' * (self.times > 1)}")
        if self.probability < 1:
            said.append(f"probability {self.probability:g}, seed {self.seed}")
        if self.for_ms is not None:
            said.append(f"for {self.for_ms / 1000:g} s")
        return ", ".join(said)

    def __str__(self) -> str:
        when = self.when
        return f"{self.action} for {self.target}{when and f' ({when})'}"


def fault_of(given: Mapping[str, Any]) -> Fault:
    """Return the fault that a JSON object describes. Raises WrongFault."""
    if unknown := given.keys() - set(KEYS):
        raise WrongFault(f"a fault has no {', '.join(sorted(unknown))}; it has {', '.join(KEYS)}")
    said = {key: value for key, value in given.items() if value is not None and value is not False}
    for key, value in said.items():
        _check(key, value)
    if len([key for key in ACTIONS if key in said]) != 1:
        raise WrongFault(f"a fault does one thing: one of {', '.join(ACTIONS)}")
    api = _api(said["api"]) if "api" in said else None
    for kind in Kind:
        if kind.value in said and api is not None and not names(api, kind):
            others = [key.title for key in sorted(ANNOUNCED) if names(key, kind)]
            raise WrongFault(f"{api.title} names no {kind.value}; these do: {', '.join(others)}")
    if "once" in said and "times" in said:
        raise WrongFault("a fault has once or times, not both")
    return Fault(
        action=_action(said),
        api=api,
        times=1 if "once" in said else said.get("times"),
        probability=float(said.get("probability", 1)),
        **{key: said[key] for key in (*CONDITIONS[1:], "nth", "seed", "for_ms") if key in said},
    )


def _check(key: str, value: object) -> None:
    """Raise WrongFault if a value has the wrong type, or is beyond its limits."""
    if key in LIMITS:
        least, most = LIMITS[key]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise WrongFault(f"{key}={value}: expected a whole number from {least} to {most}")
    elif key == "probability":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise WrongFault(f"{key}={value}: expected a number above 0, up to 1")
    elif key in ("drop", "once"):
        if value is not True:
            raise WrongFault(f"{key}={value}: expected true")
    elif key == "close":
        if value not in (True, BEFORE, AFTER):
            raise WrongFault(f"{key}={value}: expected {BEFORE} or {AFTER} (the request is performed)")
    elif type(value) is not str or not value.isprintable():
        raise WrongFault(f"{key}={value!r}: expected a text that can be printed")


def _action(said: Mapping[str, Any]) -> Action:
    if "error" in said:
        return Error(_error(said["error"]))
    if "delay_ms" in said:
        return Delay(said["delay_ms"])
    if "stall_ms" in said:
        return Stall(said["stall_ms"])
    if "bytes_per_s" in said:
        return Slow(said["bytes_per_s"])
    return Drop() if "drop" in said else Close(said["close"] == AFTER)


def _api(name: str) -> ApiKey:
    """Find a served API by Kafka's name, in any spelling: OffsetCommit, offset_commit, OFFSET-COMMIT.

    Raises WrongFault.
    """
    served = {_folded(key.title): key for key in sorted(ANNOUNCED)}
    found = served.get(_folded(name))
    if found is None:
        near = [served[each].title for each in get_close_matches(_folded(name), served)]
        raise WrongFault(_not_there("API", name, near, [key.title for key in served.values()]))
    return found


def _error(name: str) -> ErrorCode:
    codes = {code.name: code for code in ErrorCode if code is not ErrorCode.NONE}
    found = codes.get(name.upper())
    if found is None:
        raise WrongFault(_not_there("error", name, get_close_matches(name.upper(), codes, 5), codes))
    return found


def _not_there(kind: str, name: str, near: Collection[str], all_names: Collection[str]) -> str:
    if near:
        return f"no {kind} {name}; did you mean {' or '.join(near)}?"
    return f"no {kind} {name}; there are {', '.join(all_names)}"


def _folded(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
