"""The events of a run, as values; the workers report them to the parent as JSON lines.

`at_ms` is the machine's monotonic clock, which all its processes share.
"""

import json
import time
from dataclasses import asdict, dataclass, fields
from typing import Any

Partitions = tuple[int, ...]
Offsets = tuple[tuple[int, int], ...]
"""(partition, offset) pairs."""
Records = tuple[tuple[int, int, str], ...]
"""(partition, offset, value) of each record."""


def now_ms() -> int:
    """The machine's monotonic clock in milliseconds, the same for all its processes."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a process of the run did or saw."""

    name: str
    """The name of the process."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """The parent started the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed(Event):
    """The parent sent SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping(Event):
    """The parent asked the process to finish in good order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Event):
    """The process has ended."""

    status: int
    """The exit status, negative for a signal, as in subprocess."""
    said: str
    """The last line of its standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    """The process cannot go on."""

    error: str
    """The error in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """The user wants the run to end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Event):
    """The server accepts connections."""

    address: str
    """HOST:PORT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Event):
    """The admin client has created the topic."""

    topic: str
    partitions: int
    """How many partitions it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Event):
    """The server acknowledged these records to a producer."""

    records: Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(Event):
    """A consumer is up and asks to join the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(Event):
    """A consumer gave its partitions back, because the group rebalances."""

    partitions: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(Event):
    """A consumer got partitions in a generation."""

    generation: int
    partitions: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    """A consumer polled these records."""

    records: Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Event):
    """The server confirmed a commit of these offsets."""

    offsets: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen(Event):
    """The server's description of the group, as the admin client received it."""

    asked_ms: int
    """When the admin client asked."""
    state: str
    members: tuple[tuple[str, Partitions], ...]
    """(client id, partitions) of each member."""
    committed: Offsets
    ends: Offsets
    """The log end offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnseen(Event):
    """The admin client got no description of the group."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Event):
    """Spark has read the topic."""

    records: int
    values: int
    """How many different values the records have."""


KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Started, Killed, Stopping, Exited, Failed, Interrupted, Ready, Created, Acknowledged,
        Joining, Revoked, Assigned, Received, Committed, GroupSeen, GroupUnseen, Counted,
    )
}  # fmt: skip


def to_line(event: Event) -> str:
    """One JSON line, without the newline."""
    return json.dumps({"event": type(event).__name__, **asdict(event)}, separators=(",", ":"))


def from_line(line: str) -> Event:
    """The event in a line of `to_line`. Raises ValueError for any other line."""
    try:
        told = json.loads(line)
        kind = KINDS[told.pop("event")]
        if set(told) != {field.name for field in fields(kind)}:
            raise ValueError("wrong fields")
        return kind(**{name: _frozen(value) for name, value in told.items()})
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"not an event: {line[:200]!r}") from error


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
