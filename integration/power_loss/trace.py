"""Parses what strace reports about the files of a data directory.

Every line is `PID SECONDS CALL(ARGUMENTS) = RESULT`. A call that another thread's call interrupted has two
lines: the first ends in `<unfinished ...>`, the second has `<... CALL resumed>`. All strings are in hex.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kshim.storage.embedded.ahead import PREFIX
from kshim.storage.embedded.data_file import DATA_FILE

CALLS = "pwrite64,pwritev,pwritev2,write,writev,lseek,fdatasync,fsync,ftruncate,msync,unlink,rename"
OPTIONS = ["-f", "-ttt", "-y", "-xx", "-s", "100000000", "-e", f"trace={CALLS}"]

_LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)$")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(\w+)\(\d+<([^>]*)>(.*)\) += (\d+)$")
_FAILED = re.compile(r"f(?:data)?sync\(\d+<([^>]*)>\) += -1 E")
_REMOVED = re.compile(r'unlink\("([^"]*)"\) += 0$')
_STRING = re.compile(r'"((?:\\x..)*)"')
_LAST_NUMBER = re.compile(r", (\d+) *$")
_UNFINISHED = " <unfinished ...>"
_NO_FLAGS = ", 0"
"""The end of the arguments of pwritev2."""


DIRECTORY = "."
"""Stands for the directory itself, whose sync makes the names of its files durable."""


@dataclass(frozen=True)
class Written:
    """Since `at_s` readers of the file see these bytes; they are not on the disk yet."""

    at_s: float
    position: int
    data: bytes
    name: str = DATA_FILE


@dataclass(frozen=True)
class Synced:
    """A sync returned at `at_s`: everything that had been written by `since_s` is on the disk."""

    at_s: float
    since_s: float
    name: str = DATA_FILE


@dataclass(frozen=True)
class SyncFailed:
    """A sync failed at `at_s`: of what had been written by `since_s` the kernel may have dropped any page."""

    at_s: float
    since_s: float
    name: str = DATA_FILE


@dataclass(frozen=True)
class Removed:
    """At `at_s` a file was removed; on the disk its name may still be there."""

    at_s: float
    name: str


Event = Written | Synced | SyncFailed | Removed


def is_stored(name: str) -> bool:
    """True for the name of a file that a loss of power is tried on."""
    return name == DATA_FILE or name.startswith(PREFIX)


def events(lines: Iterable[str], directory: Path) -> Iterator[Event]:
    """The events in the order in which the calls returned. Raises ValueError for an unknown call."""
    begun: dict[str, tuple[float, str]] = {}
    positions: dict[str, int] = {}
    for line in lines:
        if (found := _LINE.match(line.rstrip("\n"))) is None:
            continue
        pid, seconds, text = found[1], float(found[2]), found[3]
        if text.endswith(_UNFINISHED):
            begun[pid] = seconds, text.removesuffix(_UNFINISHED)
            continue
        began_s = seconds
        if resumed := _RESUMED.match(text):
            began_s, first = begun.pop(pid)
            text = first + text[resumed.end() :]
        if (removed := _REMOVED.match(text)) is not None:
            if (name := _name(removed[1], directory)) is not None:
                yield Removed(seconds, name)
            continue
        if (failed := _FAILED.match(text)) is not None:
            if (name := _name(failed[1], directory)) is not None:
                yield SyncFailed(seconds, began_s, name)
            continue
        if (call := _CALL.match(text)) is None or (name := _name(call[2], directory)) is None:
            continue
        kind, arguments = call[1], call[3]
        if kind == "lseek":
            positions[name] = int(call[4])
        elif kind in ("fdatasync", "fsync"):
            yield Synced(seconds, began_s, name)
        elif kind in ("pwrite64", "pwritev", "pwritev2", "writev"):
            data = b"".join(map(_bytes, _STRING.findall(arguments)))
            if kind == "pwritev2":
                arguments = arguments.removesuffix(_NO_FLAGS)
            at = positions.get(name, 0) if kind == "writev" else _last_number(arguments)
            if len(data) != int(call[4]):
                raise ValueError(f"{kind} wrote {call[4]} bytes of {len(data)}")
            if kind == "writev":
                positions[name] = at + len(data)
            yield Written(seconds, at, data, name)
        else:
            raise ValueError(f"{kind} is not understood")


def _name(path: str, directory: Path) -> str | None:
    """The name of a file in the directory, or DIRECTORY; None for anything else."""
    found = Path(os.fsdecode(_bytes(path)))
    if found == directory:
        return DIRECTORY
    return found.name if found.parent == directory and is_stored(found.name) else None


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _last_number(arguments: str) -> int:
    found = _LAST_NUMBER.search(arguments)
    if found is None:
        raise ValueError("no position")
    return int(found[1])
