"""What a running server can be asked and told, by name.

Each module of this room that steers something has a method `commands`, which returns such a table; the server
puts them together, and the control socket offers them to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred


class SteeringError(Exception):
    """A command is refused. str() is one line that says why, and what would be right."""


class Command(NamedTuple):
    """One command."""

    run: Callable[..., Any]
    """Returns a JSON value, or a Deferred or coroutine of one; raises SteeringError, or fails with it."""
    types: tuple[type, ...] = ()
    """Of its arguments, which are JSON values."""


Commands = Mapping[str, Command]


class MadeLater(Commands):
    """Commands that are made when somebody asks for one: most servers are never asked, and start sooner."""

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


UNKNOWN = "the server does not know this command; does it run another version?"


def are_of_types(values: object, types: tuple[type, ...]) -> bool:
    """Whether a JSON value is an array of values of these types."""
    return isinstance(values, list) and tuple(map(type, values)) == types


def run(commands: Commands, name: object, arguments: Any) -> Any:
    """The result of a command that another process has sent, or a Deferred of it.

    Raises SteeringError, also if there is no such command, or it takes other arguments.
    """
    command = commands.get(name) if isinstance(name, str) else None
    if command is None or not are_of_types(arguments, command.types):
        raise SteeringError(UNKNOWN)
    result = command.run(*arguments)
    return Deferred.fromCoroutine(result) if isinstance(result, Coroutine) else result
