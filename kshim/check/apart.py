"""Walks a data directory in another process: LMDB trusts its pages, and a damaged one may end the process.

The process notes where it reads. If it dies, another one begins anew and leaves that place out, so all other
places are checked.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from mmap import mmap
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from kshim.check.stored import Damaged, Reading, Stored
from kshim.check.walk import Found, walk
from kshim.storage.embedded.data_file import DATA_FILE

Progress = Callable[[Stored], AbstractContextManager[Callable[[int], object]]]
"""Shows how far the check is. The function that it yields is called with the size of each checked chunk."""

_NOTE: Final = struct.Struct("64p64p")
_note = mmap(-1, _NOTE.size)
"""The database and the first key of the last reading that has begun. Shared with the other process."""


def walk_apart(data_dir: Path, progress: Progress) -> Found:
    """Check everything that is stored.

    progress: a function that a module has. Raises StorageError, DataDirLocked, and Damaged if nothing can be
    checked.
    """
    deadly: list[Reading] = []
    while True:
        _begins(Reading("", b""))
        with ProcessPoolExecutor(1, get_context("fork")) as process:
            try:
                return process.submit(_found, data_dir, deadly, progress).result()
            except BrokenProcessPool:
                died = _last()
        if not died.database or died in deadly:
            raise Damaged(f"{data_dir / DATA_FILE} cannot be read: the process that reads it dies")
        deadly.append(died)


def _found(data_dir: Path, deadly: Collection[Reading], progress: Progress) -> Found:
    with Stored(data_dir, deadly, _begins) as stored, progress(stored) as seen:
        return walk(stored, seen)


def _begins(reading: Reading) -> None:
    _note[:] = _NOTE.pack(reading.database.encode(), reading.first)


def _last() -> Reading:
    database, first = _NOTE.unpack(_note)
    return Reading(database.decode(), first)
