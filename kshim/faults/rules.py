"""Decides which fault strikes a request, and counts how often each has. Time and chance are arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kshim.faults.fault import Fault, WrongFault
from kshim.faults.named import Kind
from schemas.header import RequestHeader


class Asked(NamedTuple):
    """The parts of a request that decide which fault strikes it."""

    header: RequestHeader
    request: object
    named: Callable[[Kind], Iterator[str]]
    """Returns the groups, topics or members that the request names."""
    can_carry: Callable[[Fault], bool]
    """Returns True if the request can be answered as the fault says: its answer has a place for the error."""


@dataclass(slots=True)
class Rule:
    """A fault that was added, and counts of the requests that it fitted and struck."""

    number: int
    fault: Fault
    chance: Random
    until_s: float | None
    matched: int = 0
    """How many requests fitted while the fault was in force."""
    struck: int = 0

    def is_over(self, now_s: float) -> bool:
        """True if the fault is used up or its time is over."""
        used_up = self.fault.times is not None and self.struck >= self.fault.times
        return used_up or (self.until_s is not None and now_s >= self.until_s)

    def fits(self, asked: Asked) -> bool:
        """True if a request meets the fault's conditions."""
        fault, header = self.fault, asked.header
        if fault.api is not None and fault.api != header.api_key:
            return False
        client_id = header.client_id or ""
        if fault.client_id not in (None, client_id) or fault.not_client_id == client_id:
            return False
        for kind in Kind:
            name = getattr(fault, kind.value)
            if name is not None and name not in asked.named(kind):
                return False
        return asked.can_carry(fault)

    def strikes(self) -> bool:
        """Count a request that fits. Return True if the fault strikes it."""
        self.matched += 1
        if self.matched < self.fault.nth or self.chance.random() >= self.fault.probability:
            return False
        self.struck += 1
        return True


class Rules:
    """All faults, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: dict[int, Rule] = {}
        self._last = 0

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def add(self, fault: Fault, chance: Random, now_s: float) -> Rule:
        """Put a fault in force."""
        self._last += 1
        until_s = None if fault.for_ms is None else now_s + fault.for_ms / 1000
        rule = self._rules[self._last] = Rule(self._last, fault, chance, until_s)
        return rule

    def remove(self, number: int) -> Rule:
        """Remove a fault. Raises WrongFault if it does not exist."""
        rule = self._rules.pop(number, None)
        if rule is None:
            raise WrongFault(f"no fault {number}; there are {', '.join(map(str, self._rules)) or 'none'}")
        return rule

    def remove_all(self) -> int:
        """Remove all faults, and return how many there were."""
        found = len(self._rules)
        self._rules.clear()
        return found

    def in_force(self, now_s: float) -> list[Rule]:
        """The faults that may still strike."""
        return [rule for rule in self if not rule.is_over(now_s)]

    def strike(self, asked: Asked, now_s: float) -> Rule | None:
        """Return the first fault that strikes a request, or None.

        Earlier faults that it fits count it, too.
        """
        return next((rule for rule in self.in_force(now_s) if rule.fits(asked) and rule.strikes()), None)
