"""The commands about faults: errors, delays and broken connections, for chosen requests.

A fault is given as a JSON object; see `kshim.faults.fault`. Two more commands note requests; see
`kshim.faults.notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

from kshim.control.commands import Command, Commands, SteeringError
from kshim.network.listeners import BrokerListeners
from kshim.network.shared import Measured

if TYPE_CHECKING:
    from kshim.faults.answers import Parts, Report, Usual
    from kshim.faults.faults import Faults
    from kshim.faults.notes import NotedRequests
    from kshim.faults.rules import Rule

Made = TypeVar("Made")
B = TypeVar("B", bound="Parts")


class ListedFault(TypedDict):
    """A fault in words, and how often it has struck."""

    number: int
    does: str
    to: str
    when: str
    is_in_force: bool
    matched: int
    struck: int


class FaultSteering(Generic[B]):
    """Carries out the commands of `kshim fault`."""

    def __init__(
        self,
        brokers: Mapping[int, B],
        listeners: Mapping[int, BrokerListeners],
        measured: Measured,
        report: Report,
        usual: Callable[[], Usual[B]],
    ) -> None:
        """report: called each time a fault strikes. usual: imports the functions that answer requests without
        faults.
        """
        self._brokers = brokers
        self._listeners = listeners
        self._measured = measured
        self._report = report
        self._usual = usual
        self._faults: Faults[B] | None = None

    def commands(self) -> Commands:
        return {
            "add-fault": Command(self.add, (dict,)),
            "list-faults": Command(self.describe),
            "remove-fault": Command(self.remove, (int,)),
            "remove-faults": Command(self.remove_all),
            "note-requests": Command(self.note),
            "noted-requests": Command(self.noted, (int,)),
        }

    def add(self, given: dict[str, object]) -> ListedFault:
        """Put a fault in force, and return its description. Raises SteeringError."""
        from kshim.faults.fault import fault_of

        fault = _or_refuse(lambda: fault_of(given))
        faults = self._made()
        return _described(faults, _or_refuse(lambda: faults.add(fault)))

    def describe(self) -> list[ListedFault]:
        """The descriptions of all faults, as JSON values, in the order in which they were added."""
        faults = self._faults
        return [] if faults is None else [_described(faults, rule) for rule in faults]

    def remove(self, number: int) -> ListedFault:
        """Remove a fault, and return its last description. Raises SteeringError if it does not exist."""
        faults = self._made()
        return _described(faults, _or_refuse(lambda: faults.remove(number)))

    def remove_all(self) -> int:
        """Remove all faults, and return how many there were."""
        return 0 if self._faults is None else self._faults.remove_all()

    def note(self) -> None:
        """Note what members are given and what they commit, from now on."""
        self._made().noted()

    def noted(self, after: int) -> NotedRequests:
        """The notes after the one with that number, as JSON values. Begins to note, if nobody has."""
        return self._made().noted().after(after)

    def _made(self) -> Faults[B]:
        """Return the server's `Faults`, imported and made at first use."""
        if self._faults is None:
            from kshim.faults.faults import Faults

            usual = self._usual()
            self._faults = Faults(self._brokers, self._listeners, self._measured, self._report, usual)
        return self._faults


def _described(faults: Faults[B], rule: Rule) -> ListedFault:
    return {
        "number": rule.number,
        "does": str(rule.fault.action),
        "to": rule.fault.target,
        "when": rule.fault.when,
        "is_in_force": faults.is_in_force(rule),
        "matched": rule.matched,
        "struck": rule.struck,
    }


def _or_refuse(do: Callable[[], Made]) -> Made:
    from kshim.faults.fault import WrongFault

    try:
        return do()
    except WrongFault as error:
        raise SteeringError(str(error)) from None
