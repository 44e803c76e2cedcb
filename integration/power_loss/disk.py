"""The files that a disk may hold when the power is lost."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from integration.power_loss.trace import Event, Synced, SyncFailed, Written

PAGE_BYTES = 4096
CHOICES = 3
"""How many random choices of the unsynced pages are tried each time."""
SHARES = (0.3, 0.6, 0.9)


def possible_files(
    before: bytes, happened: Iterable[Event], chance: random.Random
) -> Iterator[tuple[float, bytes]]:
    """After each event its time, and the file as the disk may hold it; the first of these has no unsynced
    page."""
    synced = bytearray(before)
    unsynced: list[Written] = []
    for event in happened:
        if isinstance(event, Written):
            unsynced.append(event)
        else:
            yield event.since_s, bytes(synced)  # what was acknowledged before the sync began is on the disk
            settled = [written for written in unsynced if written.at_s < event.since_s]
            unsynced = [written for written in unsynced if written.at_s >= event.since_s]
            if isinstance(event, SyncFailed):  # the next sync has nothing to do for them any more
                synced = bytearray(_with_some(synced, settled, chance))
            for written in settled if isinstance(event, Synced) else ():
                _put(synced, written.position, written.data)
        yield event.at_s, bytes(synced)
        for _ in range(CHOICES if unsynced else 0):
            yield event.at_s, _with_some(synced, unsynced, chance)


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
