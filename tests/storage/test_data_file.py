"""A data file that is cut short is refused before it is read; one that only lacks free pages is not."""

from __future__ import annotations

import os
import random
from pathlib import Path

import lmdb
import pytest

from kshim.storage.embedded.data_file import DATA_FILE, refuse_cut_file
from kshim.storage.interfaces import StorageDamaged, StorageError
from tests.storage.embedded import OpenStore, batch_of, keys
from tests.storage.reactor import Reactor

SIZES = (10, 1000, 5000, 50_000, 500_000)


def test_a_store_whose_file_is_cut(open_embedded: OpenStore, reactor: Reactor, tmp_path: Path) -> None:
    store = open_embedded()
    for number in range(20):
        reactor.result(store.log.append(1, batch_of(number, 10_000), now_ms=0))
    reactor.result(store.close())
    file = store._data_dir / DATA_FILE
    whole = file.read_bytes()
    for size in (len(whole) // 2, 8192, len(whole) - 1):
        os.truncate(file, size)
        for _ in range(2):  # the lock was released
            with pytest.raises(StorageDamaged) as raised:
                open_embedded()
            assert str(raised.value) == (
                f"{file} is cut short: it has {size:,} bytes of {len(whole):,}; "
                "put back a copy of the data directory, or start with another"
            )
        file.write_bytes(whole)
    assert len(keys(open_embedded(), 1)) == 20


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_a_file_that_ends_in_what_it_begins_with(
    open_embedded: OpenStore, reactor: Reactor, size: int
) -> None:
    store = open_embedded()
    reactor.result(store.close())
    os.truncate(store._data_dir / DATA_FILE, size)
    with pytest.raises(StorageError):
        open_embedded()


def test_a_hole_is_no_cut(open_embedded: OpenStore, reactor: Reactor) -> None:
    store = open_embedded()
    reactor.result(store.close())
    file = store._data_dir / DATA_FILE
    os.truncate(file, file.stat().st_size + 100_000)
    open_embedded()


def test_any_cut_is_refused_or_does_not_matter(tmp_path: Path) -> None:
    """LMDB may leave the last pages unwritten, if they were freed at once; a process that reads says so."""
    was_short = 0
    for seed in range(40):
        chance = random.Random(seed)
        place = tmp_path / str(seed)
        place.mkdir()
        was_short += write_anything(place, chance)
        file = place / DATA_FILE
        os.truncate(file, chance.randrange(8192, file.stat().st_size))
        try:
            refuse_cut_file(place)
        except StorageDamaged:
            continue
        assert reads_all(place), f"seed {seed}"
    assert was_short > 3


def write_anything(place: Path, chance: random.Random) -> bool:
    """Write and delete values. Returns whether the file was too short once, and yet was not refused."""
    was_short = False
    with lmdb.Environment(str(place), map_size=1 << 30, max_dbs=4, sync=False) as opened:
        database = opened.open_db(b"log")
        for _ in range(chance.randrange(1, 20)):
            with opened.begin(write=True, db=database) as transaction:
                for _ in range(chance.randrange(1, 40)):
                    key = b"%d" % chance.randrange(60)
                    if chance.random() < 0.5:
                        transaction.put(key, bytes(chance.choice(SIZES)))
                    else:
                        transaction.delete(key)
            needed = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
            was_short |= (place / DATA_FILE).stat().st_size < needed
            refuse_cut_file(place)
    return was_short


def reads_all(place: Path) -> bool:
    """Read all values in a process of its own, which the map may kill."""
    if (child := os.fork()) == 0:
        with lmdb.Environment(str(place), readonly=True, lock=False, max_dbs=4) as opened:
            database = opened.open_db(b"log", create=False)
            with opened.begin(db=database, buffers=True) as transaction:
                sum(value[-1] for _, value in transaction.cursor())
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
