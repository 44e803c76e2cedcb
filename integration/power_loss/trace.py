"""Parses what strace reports about one file.

Every line is `PID SECONDS CALL(ARGUMENTS) = RESULT`. A call that another thread's call interrupted has two
lines: the first ends in `<unfinished ...>`, the second has `<... CALL resumed>`. All strings are in hex.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CALLS = "pwrite64,pwritev,pwritev2,write,writev,lseek,fdatasync,fsync,ftruncate,msync"
OPTIONS = ["-f", "-ttt", "-y", "-xx", "-s", "100000000", "-e", f"trace={CALLS}"]

_LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)$")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(\w+)\(\d+<([^>]*)>(.*)\) += (\d+)$")
_FAILED = re.compile(r"f(?:data)?sync\(\d+<([^>]*)>\) += -1 E")
_STRING = re.compile(r'"((?:\\x..)*)"')
_LAST_NUMBER = re.compile(r", (\d+) *$")
_UNFINISHED = " <unfinished ...>"


@dataclass(frozen=True)
class Written:
    """Since `at_s` readers of the file see these bytes; they are not on the disk yet."""

    at_s: float
    position: int
    data: bytes


@dataclass(frozen=True)
class Synced:
    """A sync returned at `at_s`: everything that had been written by `since_s` is on the disk."""

    at_s: float
    since_s: float


@dataclass(frozen=True)
class SyncFailed:
    """A sync failed at `at_s`: of what had been written by `since_s` the kernel may have dropped any page."""

    at_s: float
    since_s: float


Event = Written | Synced | SyncFailed


def events(lines: Iterable[str], file: Path) -> Iterator[Event]:
    """The events in the order in which the calls returned. Raises ValueError for an unknown call."""
    begun: dict[str, tuple[float, str]] = {}
    position = 0
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
        if (failed := _FAILED.match(text)) is not None and _bytes(failed[1]) == bytes(file):
            yield SyncFailed(seconds, began_s)
            continue
        if (call := _CALL.match(text)) is None or _bytes(call[2]) != bytes(file):
            continue
        name, arguments = call[1], call[3]
        if name == "lseek":
            position = int(call[4])
        elif name in ("fdatasync", "fsync"):
            yield Synced(seconds, began_s)
        elif name in ("pwrite64", "writev"):
            data = b"".join(map(_bytes, _STRING.findall(arguments)))
            at = position if name == "writev" else _last_number(arguments)
            if len(data) != int(call[4]):
                raise ValueError(f"{name} wrote {call[4]} bytes of {len(data)}")
            position += len(data) if name == "writev" else 0
            yield Written(seconds, at, data)
        else:
            raise ValueError(f"{name} is not understood")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _last_number(arguments: str) -> int:
    found = _LAST_NUMBER.search(arguments)
    if found is None:
        raise ValueError("no position")
    return int(found[1])
