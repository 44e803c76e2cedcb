"""The faults of a running server. While none is in force, requests are answered without this package."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Generic

from kshim.faults.answers import B, FaultyAnswers, Report, Struck, Usual
from kshim.faults.fault import Fault, WrongFault
from kshim.faults.notes import Notes
from kshim.faults.rules import Rule, Rules
from kshim.network.listeners import BrokerListeners
from kshim.network.shared import Measured

logger = logging.getLogger(__name__)

MOST_SEEDS = 1 << 31


class Faults(Generic[B]):
    """Adds and removes faults.

    With the first and after the last one, it exchanges the listeners' `answer`.
    """

    def __init__(
        self,
        brokers: Mapping[int, B],
        listeners: Mapping[int, BrokerListeners],
        measured: Measured,
        report: Report,
        usual: Usual[B],
    ) -> None:
        """report: called each time a fault strikes."""
        self._rules = Rules()
        self._brokers = brokers
        self._listeners = listeners
        self._measured = measured
        self._report = report
        self._usual = usual
        self._faulty = FaultyAnswers(self._rules, self._struck, self._usual)
        self._clock = next(iter(brokers.values())).clock
        self._notes: Notes[B] | None = None

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def is_in_force(self, rule: Rule) -> bool:
        """True if the fault may still strike."""
        return not rule.is_over(self._clock.seconds())

    def add(self, fault: Fault) -> Rule:
        """Put a fault in force. Raises WrongFault if it could never strike."""
        if why := self._usual.why_never(fault):
            raise WrongFault(why)
        if fault.probability < 1 and fault.seed is None:
            fault = replace(fault, seed=random.randrange(MOST_SEEDS))
        rule = self._rules.add(fault, Random(fault.seed), self._clock.seconds())
        if fault.for_ms is not None:
            self._clock.callLater(fault.for_ms / 1000, self._switch)
        logger.info("fault %d: %s", rule.number, fault)
        self._switch()
        return rule

    def remove(self, number: int) -> Rule:
        """Remove a fault. Raises WrongFault if it does not exist."""
        rule = self._rules.remove(number)
        logger.info("fault %d is removed; it struck %d times", number, rule.struck)
        self._switch()
        return rule

    def remove_all(self) -> int:
        """Remove all faults, and return how many there were."""
        found = self._rules.remove_all()
        if found:
            logger.info("all faults are removed: %d", found)
            self._switch()
        return found

    def noted(self) -> Notes[B]:
        """Note requests from now on, and return the notes. They are taken beneath the faults."""
        if self._notes is None:
            self._notes = Notes(self._usual.answer)
            self._usual = self._usual._replace(answer=self._notes.answer)
            self._faulty = FaultyAnswers(self._rules, self._struck, self._usual)
            self._switch()
        return self._notes

    def _switch(self) -> None:
        """Make the listeners answer with faults if any is in force, else without."""
        in_force = any(map(self.is_in_force, self._rules))
        answer = self._faulty if in_force else self._usual.answer
        self._usual.need_whole(in_force)
        for node_id, listener in self._listeners.items():
            listener.answer_by(self._measured(answer, self._brokers[node_id]))

    def _struck(self, struck: Struck) -> None:
        logger.log(logging.INFO if struck.times == 1 else logging.DEBUG, "%s", struck)
        self._report(struck)
        if struck.times == struck.fault.times:
            self._switch()
