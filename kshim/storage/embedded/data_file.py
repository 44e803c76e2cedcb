"""Finds out whether pages are missing at the end of LMDB's data file.

LMDB reads the file through a map, and access to a page behind the file's end kills the process. Pages at the
end that one transaction has both allocated and freed are never written. So a short file is whole if all the
pages that it lacks are free.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from kshim.storage.interfaces import StorageDamaged

DATA_FILE: Final = "data.mdb"

_MAGIC: Final = 0xBEEFC0DE
_META: Final = Struct("<16xII16xI36xQ48xQQ")
"""A meta page: magic, version, page size, root of the free list, last page, transaction number."""
_PAGE: Final = Struct("<10xHH2x")
"""The beginning of a page: its flags, and the end of its table of entries."""
_ENTRY: Final = Struct("<IHH")
"""The beginning of an entry: the size of its value, flags, the size of its key. In a branch page the first
two are the number of another page.
"""
_NUMBER: Final = Struct("<Q")
_BRANCH, _LEAF, _ON_OTHER_PAGES = 1, 2, 1
_NO_PAGE: Final = 2**64 - 1


class _Meta(NamedTuple):
    magic: int
    version: int
    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


def refuse_cut_file(data_dir: Path) -> None:
    """Raise StorageDamaged if the file lacks pages that are in use. LMDB itself refuses a file of another
    kind.
    """
    path = data_dir / DATA_FILE
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        status = os.fstat(fd)
        meta = _last_meta(fd)
        if meta is None or not stat.S_ISREG(status.st_mode):
            return
        needed = (meta.last_page + 1) * meta.page_bytes
        if status.st_size < needed and not _are_free(fd, meta, status.st_size // meta.page_bytes):
            raise StorageDamaged(
                f"{path} is cut short: it has {status.st_size:,} bytes of {needed:,}; "
                "put back a copy of the data directory, or start with another"
            )
    finally:
        os.close(fd)


def _last_meta(fd: int) -> _Meta | None:
    """The later of the two meta pages; None if the file does not begin with a meta page."""
    first = _meta(fd, 0)
    if first is None or sys.byteorder != "little":
        return None
    second = _meta(fd, first.page_bytes)
    return first if second is None or second.transaction <= first.transaction else second


def _meta(fd: int, position: int) -> _Meta | None:
    data = os.pread(fd, _META.size, position)
    if len(data) < _META.size:
        return None
    meta = _Meta(*_META.unpack(data))
    return meta if meta.magic == _MAGIC and 512 <= meta.page_bytes <= 65536 else None


def _are_free(fd: int, meta: _Meta, first: int) -> bool:
    """True if the free list is complete and has all pages from `first` to the last."""
    missing = set(range(first, meta.last_page + 1))
    try:
        for page in _free_pages(fd, meta):
            missing.discard(page)
            if not missing:
                return True
    except (ValueError, IndexError, struct.error):
        pass
    return False


def _free_pages(fd: int, meta: _Meta) -> Iterator[int]:
    """The page numbers in the free list, which is a B-tree. Raises ValueError, IndexError, struct.error if a
    page of the list is missing or makes no sense.
    """
    pages, seen = [meta.free_root], set[int]()
    while pages:
        number = pages.pop()
        if number == _NO_PAGE:
            continue
        if number in seen:
            raise ValueError(number)
        seen.add(number)
        page = _read(fd, number * meta.page_bytes, meta.page_bytes)
        flags, lower = _PAGE.unpack_from(page)
        if not flags & (_BRANCH | _LEAF):
            raise ValueError(flags)
        for at in range(_PAGE.size, lower, 2):
            entry = page[int.from_bytes(page[at : at + 2], "little") :]
            if len(entry) < _ENTRY.size:
                raise ValueError(at)
            size, entry_flags, key_size = _ENTRY.unpack_from(entry)
            value = entry[_ENTRY.size + key_size :]
            if flags & _BRANCH:
                pages.append(size | entry_flags << 32)
                continue
            if entry_flags & _ON_OTHER_PAGES:
                (first,) = _NUMBER.unpack_from(value.ljust(_NUMBER.size))
                value = _read(fd, first * meta.page_bytes + _PAGE.size, size)
            for (free,) in _NUMBER.iter_unpack(value[_NUMBER.size : size]):
                yield free


def _read(fd: int, position: int, size: int) -> bytes:
    if os.fstat(fd).st_size < position + size:
        raise ValueError(position)
    return os.pread(fd, size, position)
