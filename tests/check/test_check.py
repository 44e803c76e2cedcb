"""`kshim check` on a sound directory, and on one with each kind of damage."""

from __future__ import annotations

import faulthandler
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kshim.cli.main import commands
from kshim.cluster import Cluster, NewTopic
from kshim.configs.config import Config
from kshim.storage.embedded import EmbeddedStore, compaction, writes
from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.rows import CHUNK_KEY, KEY, OFFSET, PARTITION_KEY, SO_FAR
from kshim.storage.interfaces import Cleanup, Compaction
from kshim.storage.journal import LogJournal
from kshim.storage.producers import NO_TRANSACTION, ProducerState, SentBatch, encode_producer
from schemas.internal_topics.group_metadata_log import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from schemas.records.batch import Record, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.check.sound_group import EPOCH, current, current_key, member, member_key
from tests.storage.embedded import apply_all
from tests.storage.reactor import Reactor

POINTERS_AT = 16
"""Where the pointers to rows begin in a page of LMDB, two bytes each."""
VALUE = b"a value that is found in the file"
Change = Callable[[Environment, WriteTransaction], None]


class Directory:
    """Topic t with an empty partition and one of five batches of two records; and a committed offset."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reactor = Reactor()
        self.store = store = EmbeddedStore(path, self.reactor, sync=False)
        store.open()
        cluster = Cluster(store.metadata, store.log, Config())
        self.result(cluster.start())
        self.result(cluster.create_topics([NewTopic("t", num_partitions=2)]))
        self.partition_no = cluster.topics["t"].partitions[0].partition_no
        offsets = cluster.group_metadata_topic.partitions
        self.offsets_no = offsets[7].partition_no
        for number in range(5):
            self.append(
                encode([Record(delta, 1000 + number, b"k", VALUE + b"%d" % number) for delta in range(2)])
            )
        key = OffsetCommitKey(group="group", topic="t", partition=0)
        value = OffsetCommitValue(offset=5, leader_epoch=-1, metadata="", commit_timestamp=1000)
        journal = LogJournal(store.log, [partition.partition_no for partition in offsets])
        self.result(journal.append(7, [(encode_key(key), encode_value(value))], 1000))

    def result(self, deferred: Any) -> Any:
        return self.reactor.result(deferred)

    def append(self, batch: bytes, partition_no: int | None = None) -> None:
        self.result(self.store.log.append(partition_no or self.partition_no, batch, now_ms=0))

    def close(self) -> None:
        self.result(self.store.close())

    def check(self) -> Result:
        return CliRunner().invoke(commands, ["check", str(self.path)], prog_name="kshim")

    def faults(self) -> list[str]:
        """The faults that are printed once the store is closed, without the table."""
        self.close()
        done = self.check()
        assert done.exit_code == 1, done.output
        lines: list[str] = done.output.splitlines()
        return lines[: next(index for index, line in enumerate(lines) if line.startswith("Topic "))]

    def change(self, change: Change) -> None:
        """Change the databases behind the store's back."""
        apply_all(self.store, self.reactor)
        environment = self.store._environment
        environment.write(lambda transaction: change(environment, transaction))

    def key(self, last_offset: int) -> bytes:
        return CHUNK_KEY.pack(self.partition_no, last_offset)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    """Each append is a chunk in LMDB."""
    monkeypatch.setattr(writes, "CHUNK_BYTES", 1)
    return Directory(tmp_path / "data")


def test_a_whole_directory(directory: Directory) -> None:
    directory.close()
    before = (directory.path / "data.mdb").read_bytes()
    done = directory.check()
    assert done.exit_code == 0
    rows = [line.split() for line in done.output.splitlines()]
    assert rows[0] == ["Topic", "Partitions", "Records", "Batches", "Bytes", "Faults"]
    assert rows[1][:4] == ["__consumer_offsets", "50", "1", "1"]
    assert rows[2][:4] + rows[2][5:] == ["t", "2", "10", "5", "0"]
    assert rows[3] == ["all", "is", "well"]
    assert (directory.path / "data.mdb").read_bytes() == before


def test_transactions_trimming_compaction_and_deletion_are_no_faults(directory: Directory) -> None:
    transactional = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
    for sequence, committed in ((0, True), (1, False), (2, None)):
        directory.append(encode([Record(0, 5, b"k", b"")], base_sequence=sequence, **transactional))
        if committed is not None:
            directory.append(
                encode_marker(EndTxnMarker(9, 0, committed, coordinator_epoch=0, timestamp_ms=7))
            )
    directory.close()
    assert directory.check().exit_code == 0, directory.check().output
    directory.store.open()
    directory.result(directory.store.log.delete_records(directory.partition_no, 13))
    directory.close()
    assert directory.check().exit_code == 0, directory.check().output
    directory.store.open()
    directory.store.log.delete(directory.partition_no)
    directory.close()
    assert directory.check().exit_code == 0, directory.check().output


def test_what_a_killed_server_had_not_put_into_lmdb_is_checked_too(
    directory: Directory, tmp_path: Path
) -> None:
    for number in range(3):
        directory.append(encode([Record(0, 2000 + number, b"k", b"late")], producer_id=5, producer_epoch=0))
    killed = tmp_path / "killed"
    shutil.copytree(directory.path, killed)
    before = {file.name: file.read_bytes() for file in killed.iterdir() if file.name != "kshim.lock"}
    assert any(name.startswith("ahead.") for name in before)
    done = CliRunner().invoke(commands, ["check", str(killed)], prog_name="kshim")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[2].split()[:4] == ["t", "2", "13", "8"]
    assert {file.name: file.read_bytes() for file in killed.iterdir() if file.name != "kshim.lock"} == before
    directory.close()


def test_a_byte_that_has_changed(directory: Directory) -> None:
    directory.close()
    file = directory.path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(VALUE + b"3", VALUE + b"4"))
    assert directory.faults() == ["t-0 at offset 6: the CRC of the batch does not match"]


def damaged_chunk(last_offset: int, damage: Callable[[bytes], bytes]) -> Callable[[Directory], None]:
    def apply(directory: Directory) -> None:
        def change(environment: Environment, transaction: WriteTransaction) -> None:
            key = directory.key(last_offset)
            value = transaction.get(key, db=environment.log)
            assert value is not None
            transaction.put(key, damage(value), db=environment.log)

        directory.change(change)

    return apply


def without(*last_offsets: int) -> Callable[[Directory], None]:
    def apply(directory: Directory) -> None:
        def change(environment: Environment, transaction: WriteTransaction) -> None:
            for last_offset in last_offsets:
                assert transaction.delete(directory.key(last_offset), db=environment.log)

        directory.change(change)

    return apply


def put(database: str, key: bytes, value: bytes) -> Callable[[Directory], None]:
    def apply(directory: Directory) -> None:
        directory.change(lambda env, transaction: transaction.put(key, value, db=getattr(env, database)))

    return apply


def of_partition(database: str, value: bytes, number: int | None = None) -> Callable[[Directory], None]:
    """A row of the partition, or of one of its numbers."""

    def apply(directory: Directory) -> None:
        no = directory.partition_no
        key = PARTITION_KEY.pack(no) if number is None else KEY.pack(no, number)
        put(database, key, value)(directory)

    return apply


def moved(by: int) -> Callable[[bytes], bytes]:
    """The batch in a chunk has another base offset than the chunk."""
    return lambda value: value[:8] + (int.from_bytes(value[8:16]) + by).to_bytes(8) + value[16:]


def producer(base_offset: int, transaction_start: int = NO_TRANSACTION) -> bytes:
    return encode_producer(ProducerState(0, -1, 5, transaction_start, (SentBatch(0, 0, base_offset, 5),)))


def consumer_group_records(*entries: tuple[Any, Any]) -> Callable[[Directory], None]:
    def apply(directory: Directory) -> None:
        batch = encode(
            [
                Record(delta, 1, encode_key(key), None if value is None else encode_value(value))
                for delta, (key, value) in enumerate(entries)
            ]
        )
        directory.append(batch, directory.offsets_no)

    return apply


@pytest.mark.parametrize(
    ("damage", "faults"),
    [
        (without(5), ["t-0 at offset 4: no records up to 6"]),
        (without(1), ["t-0 at offset 0: no records up to 2"]),
        (
            damaged_chunk(5, lambda value: value[:-5]),
            ["t-0 at offset 4: {} bytes are not a whole record batch"],
        ),
        (
            damaged_chunk(5, lambda value: value[:8]),
            ["t-0 at offset 3: the chunk ends here, but should end at 5"],
        ),
        (
            damaged_chunk(5, lambda value: value[:24] + b"\x00" + value[25:]),
            ["t-0 at offset 4: has magic 0"],
        ),
        (
            damaged_chunk(5, moved(-1)),
            [
                "t-0 at offset 3: begins before 4, where the batch before it ends",
                "t-0 at offset 4: the chunk ends here, but should end at 5",
            ],
        ),
        (
            damaged_chunk(5, lambda value: SO_FAR.pack(7) + value[8:]),
            ["t-0 at offset 5: an earlier timestamp is larger than the index says"],
        ),
        (
            damaged_chunk(5, lambda value: value[:20] + (3).to_bytes(4) + value[24:]),
            [f"t-0 at offset {offset}: has leader epoch 0, after a later one" for offset in (6, 8)],
        ),
        (of_partition("starts", OFFSET.pack(11)), ["t-0 at offset 11: the log starts here, but ends at 10"]),
        (
            of_partition("producers", producer(10), 3),
            ["t-0: producer 3 has a batch at 10, but the log ends at 10"],
        ),
        (
            of_partition("producers", producer(8), 3),
            ["t-0: the state of producer 3 differs from its batches"],
        ),
        (
            of_partition("aborted", bytes(24), 3),
            ["t-0 at offset 0: the index of aborted transactions differs from the batches"],
        ),
        (
            put("log", CHUNK_KEY.pack(4000, 1), bytes(100)),
            ["partition 4000: has records, but belongs to no topic"],
        ),
        (put("meta", b"cluster/id", b""), ["metadata: the cluster has no id"]),
        (
            put("meta", b"cluster/next_partition_no", b"3"),
            ["metadata: partition number 3 would be given out twice"],
        ),
        (
            lambda directory: directory.append(
                encode([Record(0, 1, b"\x00\x63junk", b""), Record(1, 1, b"\0", b"")]), directory.offsets_no
            ),
            ["__consumer_offsets-7 at offset 2: the record cannot be read: *"],
        ),
        (
            lambda directory: directory.append(encode([Record(0, 1, None, b"")]), directory.offsets_no),
            ["__consumer_offsets-7 at offset 1: the record has no key"],
        ),
        (
            consumer_group_records(
                (current_key("a"), current(3, 0)), (current_key("b"), current(3, 0)), (EPOCH, None)
            ),
            [
                "__consumer_offsets-7 at offset 2: the record cannot be read: "
                "ConsumerGroupCurrentMemberAssignmentKey*"
            ],
        ),
        (
            consumer_group_records((member_key("a"), member()), (current_key("a"), current(3, 0))),
            ["__consumer_offsets-7: consumer group g: member a is in epoch 3, but the group in 1"],
        ),
    ],
)
def test_damage(directory: Directory, damage: Callable[[Directory], None], faults: list[str]) -> None:
    damage(directory)
    found = directory.faults()
    assert len(found) == len(faults), found
    for fault, wanted in zip(found, faults, strict=True):
        if wanted.endswith("*"):
            assert fault.startswith(wanted[:-1])
        else:
            assert fault == wanted.format(fault.partition("offset 4: ")[2].partition(" ")[0])


def test_a_topic_whose_metadata_is_damaged(directory: Directory) -> None:
    put("meta", b"topic/t", b"{")(directory)
    found = directory.faults()
    assert found[0].startswith("topic t: its metadata cannot be read: JSONDecodeError")
    assert found[1] == f"partition {directory.partition_no}: has records, but belongs to no topic"


def test_not_every_fault_of_one_partition_is_told(directory: Directory) -> None:
    for _ in range(100):
        directory.append(encode([Record(0, 1, b"k", VALUE)]))
    directory.close()
    file = directory.path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(VALUE, bytes(len(VALUE))))
    found = directory.faults()
    assert len(found) == 21
    assert found[-1] == "t-0: and more"


def test_a_file_that_is_cut_short(directory: Directory) -> None:
    directory.close()
    file = directory.path / "data.mdb"
    with file.open("r+b") as cut:
        cut.truncate(file.stat().st_size // 2)
    ended(directory, 1, f"{file} is cut short: it has")


def test_a_file_that_is_none_of_ours(directory: Directory) -> None:
    directory.close()
    (directory.path / "data.mdb").write_bytes(b"something else" * 1000)
    ended(directory, 1, f"{directory.path}/data.mdb cannot be read: ")


def test_a_directory_in_use(directory: Directory) -> None:
    ended(directory, None, f"Error: data directory {directory.path} is in use by process ")
    directory.close()


def test_no_directory(directory: Directory) -> None:
    directory.close()
    directory.path = directory.path / "nope"
    ended(directory, None, f"Error: {directory.path} is not a data directory")
    assert not directory.path.exists()


def ended(directory: Directory, exit_code: int | None, why: str) -> None:
    """The outcome in one line. exit_code: None if the command line reports it as the user's error."""
    done = directory.check()
    assert done.output.startswith(why), done.output
    assert len(done.output.splitlines()) == 1
    assert exit_code is None or done.exit_code == exit_code


def test_a_pass_of_compaction_that_was_cut_short(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that an unfinished pass has removed are no fault, whatever the topic's configs are by now."""
    monkeypatch.setattr("kshim.storage.embedded.log.MIN_DIRTY_RECORDS", 1)
    monkeypatch.setattr("kshim.storage.embedded.compaction.STEP_CHUNKS", 2)
    directory.store.log.configure(directory.partition_no, Cleanup(Compaction()))
    compactor = directory.store.log._chores.compactor
    put, stopped = compaction._Compacting._put, []

    def cut_short(self: compaction._Compacting, transaction: WriteTransaction) -> None:
        put(self, transaction)
        stopped.append(compactor._passes.clear())

    monkeypatch.setattr(compaction._Compacting, "_put", cut_short)
    directory.store.log.clean(10**6)
    while not stopped:
        directory.append(encode([Record(0, 1, b"k", VALUE)]))
    directory.close()
    done = directory.check()
    assert done.exit_code == 0, done.output


# ---- damaged pages

PAGE_BYTES = 4096
LEAF = 2
"""The flag of a page with keys, in its header: page number (u64), padding (u16), flags (u16)."""


def leaves_with(file: Path, key: bytes) -> list[int]:
    """The numbers of the pages with keys that have `key`."""
    data = file.read_bytes()
    pages = range(2, len(data) // PAGE_BYTES)
    return [
        number
        for number in pages
        if (page := data[number * PAGE_BYTES :][:PAGE_BYTES])[10:12] == LEAF.to_bytes(2, "little")
        and int.from_bytes(page[:8], "little") == number
        and key in page
    ]


def damage(file: Path, page: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(page * PAGE_BYTES)
        opened.write(bytes(PAGE_BYTES))


def test_the_partitions_behind_a_damaged_page_are_not_called_sound(directory: Directory) -> None:
    apply_all(directory.store, directory.reactor)
    directory.close()
    file = directory.path / "data.mdb"
    for page in leaves_with(file, CHUNK_KEY.pack(directory.partition_no, 9)):
        damage(file, page)
    done = directory.check()
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert any(
        re.fullmatch(r"t-0 at offset 0: not checked from here on: the pages of log are damaged: .*", line)
        for line in lines
    )
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("t ", "__consumer_offsets "))}
    assert {name: (row[1], row[-1]) for name, row in rows.items()} == {
        "t": ("2", "2"),
        "__consumer_offsets": ("50", "50"),
    }
    assert lines[-1].endswith(" faults")


def test_a_damaged_page_of_the_metadata(directory: Directory) -> None:
    apply_all(directory.store, directory.reactor)
    directory.close()
    file = directory.path / "data.mdb"
    for page in leaves_with(file, b"next_partition_no"):
        damage(file, page)
    done = directory.check()
    assert done.exit_code == 1
    assert done.output.startswith("the pages of meta are damaged: ")


@pytest.fixture
def quiet_death() -> Iterator[None]:
    """Keep pytest from printing the stack of a process that dies."""
    faulthandler.disable()
    yield
    faulthandler.enable(sys.__stderr__)


@pytest.mark.usefixtures("quiet_death")
def test_a_page_that_ends_the_process_which_reads_it(directory: Directory) -> None:
    """The pointer to a row leads beyond the end of the file, so reading it is SIGBUS."""
    apply_all(directory.store, directory.reactor)
    directory.close()
    file = directory.path / "data.mdb"
    for page in leaves_with(file, directory.key(9)):
        with file.open("r+b") as opened:
            opened.seek(page * PAGE_BYTES + POINTERS_AT + 2 * 3)
            opened.write(b"\xf0\xff")
    done = directory.check()
    lines = done.output.splitlines()
    assert lines[0] == (
        "t-0 at offset 0: not checked from here on: "
        "the pages of log are damaged: the process that reads them dies"
    )
    assert [line.split() for line in lines[2:]] == [
        ["__consumer_offsets", "50", "1", "1", "108", "0"],
        ["t", "2", "0", "0", "0", "1"],
        ["1", "fault"],
    ]
    assert done.exit_code == 1
