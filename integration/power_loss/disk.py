"""The files that a disk may hold when the power is lost."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from integration.power_loss.trace import DIRECTORY, Event, Removed, Synced, SyncFailed, Written

PAGE_BYTES = 4096
CHOICES = 3
"""How many random choices of the unsynced pages are tried each time."""
SHARES = (0.3, 0.6, 0.9)

Image = Mapping[str, bytes]
"""The content of each file, by its name."""


@dataclass
class File:
    """A file on the disk: its synced content, and what may have been written since."""

    created_s: float
    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[Written] = field(default_factory=list)
    is_named: bool = False
    """True if the name is on the disk for certain."""
    removed_s: float | None = None
    """When it was removed, if that is not on the disk for certain."""

    def settle(self, event: Synced | SyncFailed, chance: random.Random) -> None:
        settled = [written for written in self.unsynced if written.at_s < event.since_s]
        self.unsynced = [written for written in self.unsynced if written.at_s >= event.since_s]
        if isinstance(event, SyncFailed):  # the next sync has nothing to do for them any more
            self.synced = bytearray(_with_some(self.synced, settled, chance))
        for written in settled if isinstance(event, Synced) else ():
            _put(self.synced, written.position, written.data)


def possible_files(happened: Iterable[Event], chance: random.Random) -> Iterator[tuple[float, Image]]:
    """After each event its time, and the files as the disk may hold them; the first image of each time has
    no unsynced page and no unsynced change of a name."""
    files: dict[tuple[str, int], File] = {}
    """A file that was removed and one that has its name now may both be on the disk, but not both named."""
    numbers: dict[str, int] = {}
    for event in happened:
        if isinstance(event, Written):
            key = event.name, numbers.setdefault(event.name, 0)
            files.setdefault(key, File(event.at_s)).unsynced.append(event)
        elif isinstance(event, Removed):
            key = event.name, numbers.setdefault(event.name, 0)
            numbers[event.name] += 1
            if key in files:
                files[key].removed_s = event.at_s
        else:
            yield event.since_s, _image(files, None)  # what was acknowledged before the sync began is there
            if event.name == DIRECTORY:
                _settle_names(files, event)
            elif (key := (event.name, numbers.get(event.name, 0))) in files:
                files[key].settle(event, chance)
        yield event.at_s, _image(files, None)
        is_open = any(file.unsynced or file.removed_s or not file.is_named for file in files.values())
        for _ in range(CHOICES if is_open else 0):
            yield event.at_s, _image(files, chance)


def _settle_names(files: dict[tuple[str, int], File], event: Synced | SyncFailed) -> None:
    for key, file in list(files.items()):
        if isinstance(event, Synced) and file.created_s < event.since_s:
            file.is_named = True
        if isinstance(event, Synced) and file.removed_s is not None and file.removed_s < event.since_s:
            del files[key]


def _image(files: Mapping[tuple[str, int], File], chance: random.Random | None) -> Image:
    """chance: None for what is certain. A removed file is certain to be there until that is synced."""
    image: dict[str, bytes] = {}
    for (name, _), file in files.items():
        if chance is None:
            if file.is_named:
                image.setdefault(name, bytes(file.synced))
        elif (file.is_named or chance.random() < 0.5) and (file.removed_s is None or chance.random() < 0.5):
            image[name] = _with_some(file.synced, file.unsynced, chance)
    return image


def _with_some(synced: bytearray, unsynced: Iterable[Written], chance: random.Random) -> bytes:
    file, share = bytearray(synced), chance.choice(SHARES)
    for written in unsynced:
        for position, page in _pages(written):
            if chance.random() < share:
                _put(file, position, page)
    return bytes(file)


def _pages(written: Written) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(written.data):
        size = PAGE_BYTES - (written.position + at) % PAGE_BYTES
        yield written.position + at, written.data[at : at + size]
        at += size


def _put(file: bytearray, position: int, data: bytes) -> None:
    file.extend(bytes(max(0, position + len(data) - len(file))))
    file[position : position + len(data)] = data
