"""The commands of a running server, by name.

Each class that steers something has a method `commands`, which returns a table of its commands. The server
joins these tables, and the control socket runs the commands for other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from twisted.internet.defer import Deferred


class SteeringError(Exception):
    """A command was refused. str() is one line that says why, and what would be right."""


class Command(NamedTuple):
    """One command."""

    run: Callable[..., object]
    """Returns a JSON value, or a Deferred or coroutine of one; raises SteeringError, or fails with it."""
    types: tuple[type, ...] = ()
    """The types of the arguments, which are JSON values."""


Commands = Mapping[str, Command]
READING = frozenset(
    (
        *("clock-now", "describe", "events", "explain-group", "groups", "groups-here", "list-faults"),
        *("plan-offsets", "why", "why-here"),
    )
)
"""The commands that change nothing, and show what the HTTP interface shows anyway."""


class MadeLater(Commands):
    """Commands that are made at the first request for one. Most servers never get a request, and start sooner
    without them.
    """

    def __init__(self, make: Callable[[], Commands]) -> None:
        self._make = make
        self._made: Commands | None = None

    def _all(self) -> Commands:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Command:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class Reading(Commands):
    """The commands that change nothing."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def __getitem__(self, name: str) -> Command:
        if name not in READING:
            raise KeyError(name)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return filter(READING.__contains__, self._commands)

    def __len__(self) -> int:
        return sum(1 for _ in self)


UNKNOWN = "the server does not know this command; does it run another version?"
_IN_FRONT = "a server in front of a Kafka cluster (--upstream)"
_OF_BROKERS = ("describe", "move-leader", "move-coordinator", "stop-broker", "start-broker")
_OF_USERS = ("list-users", "put-user", "remove-user")
NOT_HERE: Mapping[str, str] = {
    **dict.fromkeys(("adopt", "adopt-matching", "drain"), f"only {_IN_FRONT} does this"),
    **dict.fromkeys(_OF_BROKERS, f"{_IN_FRONT} does not do this: the brokers are the cluster's"),
    **dict.fromkeys(_OF_USERS, f"{_IN_FRONT} does not do this: it keeps no users"),
}
"""Why a server refuses a command that only the other kind of server has."""


def are_of_types(values: object, types: tuple[type, ...]) -> TypeGuard[list[object]]:
    """True if a JSON value is an array with exactly these types, in this order."""
    return isinstance(values, list) and tuple(map(type, values)) == types


def run(commands: Commands, name: object, arguments: object) -> object:
    """Run a command that another process has sent; return its result, or a Deferred of it.

    Raises SteeringError if the command refuses, does not exist, or takes other arguments.
    """
    if not isinstance(name, str):
        raise SteeringError(UNKNOWN)
    if (command := commands.get(name)) is None:
        raise SteeringError(NOT_HERE.get(name, UNKNOWN))
    if not are_of_types(arguments, command.types):
        raise SteeringError(UNKNOWN)
    result = command.run(*arguments)
    return Deferred.fromCoroutine(result) if isinstance(result, Coroutine) else result
