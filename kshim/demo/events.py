"""What happens in a run of the demo, as values; the workers tell them to the parent as JSON lines.

Times are `at_ms`: the machine's monotonic clock, which all processes of one machine share.
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
    """Milliseconds of the clock that every process of this machine shares."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that `name` (a process of the run) did or saw at `at_ms`."""

    name: str
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
    """The process is gone: `status` as subprocess gives it, and the last line of its standard error."""

    status: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    """The process cannot go on; `error` is one line."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """The user wants the run to end now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Event):
    """The server accepts connections at `address` (HOST:PORT)."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Event):
    """The topic exists, with so many partitions."""

    topic: str
    partitions: int


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
    """A consumer was given partitions in a generation."""

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
    """What the admin client was told about the group, asked at `asked_ms`.

    `members` is (client id, partitions) of each member; `ends` are the log end offsets.
    """

    asked_ms: int
    state: str
    members: tuple[tuple[str, Partitions], ...]
    committed: Offsets
    ends: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnseen(Event):
    """The admin client could not ask."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Event):
    """Spark read the topic: so many records, so many different values."""

    records: int
    values: int


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
    """The event a line tells. Raises ValueError for anything that is not one."""
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
