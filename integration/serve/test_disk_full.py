"""A full disk: the server answers with Kafka's errors, logs one line, and goes on when there is room."""

from __future__ import annotations

import http.client
import json
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer, read_all
from integration.support.handmade import OFFSET_COMMIT, Raw, array, produce, record_batch, request, string
from integration.support.server import FOREIGN_COMMAND, Server, run_to_end
from kshim.testing.wire import Wire
from schemas.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

MOUNT = shutil.which("mount")
NONE, NOT_COORDINATOR, KAFKA_STORAGE_ERROR = 0, 16, 56
GROUP = "readers"
pytestmark = pytest.mark.skipif(bool(FOREIGN_COMMAND), reason="Apache Kafka stops when its disk is full")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], bool]]]:
    """A disk of 32 MB, and a function that enlarges it."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(options: str) -> bool:
        command = [MOUNT or "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
        return MOUNT is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0

    if not mount("size=32m"):
        pytest.skip("this user may not mount a small filesystem")
    try:
        yield disk, partial(mount, "remount,size=64m")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def produced(raw: Raw, topic: str, value: bytes) -> int:
    """The error code of a Produce v3: correlation id, [topic, [partition, error, ...]], ..."""
    reply = raw.answer_to(produce(topic, record_batch(value)))
    (error,) = struct.unpack_from(">h", reply, 4 + 4 + len(string(topic)) + 4 + 4)
    return int(error)


def committed(raw: Raw, topic: str, metadata: str) -> int:
    """The error code of an OffsetCommit without a member."""
    partition = struct.pack(">iq", 0, 7) + string(metadata)
    body = string(GROUP) + struct.pack(">i", -1) + string("") + struct.pack(">q", -1)
    reply = raw.answer_to(request(OFFSET_COMMIT, 2, body + array(string(topic) + array(partition))))
    (error,) = struct.unpack(">h", reply[-2:])
    return int(error)


def ready(server: Server) -> tuple[int, str]:
    """The status of /readyz, and what it says."""
    connection = http.client.HTTPConnection(server.stdout[1].split()[2], timeout=10)
    connection.request("GET", "/readyz")
    reply = connection.getresponse()
    told = json.load(reply)
    connection.close()
    return reply.status, told.get("status") or told["error"]


def fill(attempt: Callable[[], int]) -> tuple[int, int]:
    """Repeat until it is refused; returns how often it was not, and the error."""
    for count in range(10_000):
        if error := attempt():
            return count, error
    raise AssertionError("the disk does not get full")


def test_a_full_disk(small_disk: tuple[Path, Callable[[], bool]], new_server: Callable[..., Server]) -> None:
    disk, enlarge = small_disk
    server = new_server("--http", "127.0.0.1:0", data_dir=disk / "data").start()
    admin = Admin(server.bootstrap)
    admin.create_topic("records")
    wait_until(lambda: ready(server) == (200, "ready"), 10, "it is ready")
    wait_until(lambda: admin.partitions("records"), 10, "the topic")
    raw = Raw(server)
    wait_until(lambda: committed(raw, "records", "") == NONE, 10, "the coordinator")

    # First no large write fits any more, then no small write of a group either.
    large = bytes(100_000)
    kept, error = fill(lambda: produced(raw, "records", large))
    assert kept > 50
    assert error == KAFKA_STORAGE_ERROR
    _, error = fill(lambda: produced(raw, "records", bytes(1000)))
    assert error == KAFKA_STORAGE_ERROR
    _, error = fill(lambda: committed(raw, "records", "m" * 4000))
    assert error == NOT_COORDINATOR
    assert produced(raw, "records", large) == KAFKA_STORAGE_ERROR
    told = [line.partition("storage fails: ")[2] for line in server.log if "storage fails" in line]
    # Small writes succeed on a full disk. If they do so for 5 s, storage works again for a while.
    again = sum("storage works again" in line for line in server.log)
    assert told == [f"no space left for {disk}/data"] * (1 + again)
    assert ready(server) == (503, "the disk is full: records and offsets are refused")

    assert enlarge()
    wait_until(lambda: ready(server) == (200, "ready"), 10, "it is ready without a write")
    wait_until(lambda: committed(raw, "records", "m") == NONE, 10, "the shard")
    assert produced(raw, "records", large) == NONE
    assert admin.group_offsets(GROUP) == {("records", 0): 7}
    producer = new_producer(server.bootstrap)
    end = producer.send("records", b"last", partition=0).get(timeout=10).offset + 1
    producer.close()
    found = read_all(server.bootstrap, "records", end)
    assert [record.offset for record in found] == list(range(end))
    admin.close()
    assert server.running, server.report()
    print(server.report())
    assert not [line for line in server.log if "Traceback" in line]
    server.kill()
    done = run_to_end("check", str(disk / "data"), cwd=disk)
    assert done.returncode == 0, done.stdout


def test_deletions_on_a_full_disk(
    small_disk: tuple[Path, Callable[[], bool]], new_server: Callable[..., Server]
) -> None:
    """Requests that free space have a reserve, also when others have taken the rest of the disk."""
    disk, _ = small_disk
    options = ("--set", "log.retention.check.interval.ms=200")
    server = new_server(*options, data_dir=disk / "data").start()
    admin, raw = Admin(server.bootstrap), Raw(server)
    large = bytes(100_000)
    for topic in ("kept", "trimmed", "deleted", "expired"):
        admin.create_topic(topic, configs={"retention.ms": "-1"})  # the records are old
        wait_until(lambda topic=topic: admin.partitions(topic), 10, "the topic")
        for _ in range(15):
            assert produced(raw, topic, large) == NONE
    fill(lambda: produced(raw, "kept", large))
    fill(lambda: produced(raw, "kept", bytes(1000)))
    with (disk / "of others").open("wb", 0) as others, suppress(OSError):
        while others.write(bytes(4096)):
            pass

    partition = DeleteRecordsPartition(partition_index=0, offset=15)
    trimmed = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="trimmed", partitions=(partition,)),), timeout_ms=10_000
    )
    with Wire(server.host, server.port) as wire:
        assert wire.ask(2, trimmed).topics[0].partitions[0].error_code == NONE
    for free in (
        lambda: None,
        lambda: admin.delete_topic("deleted"),
        lambda: admin.set_configs("expired", {"retention.bytes": "1", "retention.ms": "-1"}),
    ):
        free()
        wait_until(lambda: produced(raw, "kept", large) == NONE, 30, "room again")
        _, error = fill(lambda: produced(raw, "kept", large))
        assert error == KAFKA_STORAGE_ERROR
    admin.close()
    assert server.running, server.report()
    assert not [line for line in server.log if "Traceback" in line or "open again" in line]
    server.kill()
    done = run_to_end("check", str(disk / "data"), cwd=disk)
    assert done.returncode == 0, done.stdout


def test_a_start_on_a_full_disk(
    small_disk: tuple[Path, Callable[[], bool]], new_server: Callable[..., Server]
) -> None:
    """LMDB's lock file is mapped: a page for which there is no room would kill the process."""
    disk, enlarge = small_disk
    server = new_server(data_dir=disk / "data").start()
    server.kill()
    (disk / "data" / "lock.mdb").unlink()
    with (disk / "of others").open("wb", 0) as others, suppress(OSError):
        while others.write(bytes(4096)):
            pass
    done = run_to_end("serve", "--listen", "127.0.0.1:0", "--data-dir", str(disk / "data"), cwd=disk)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"cannot use data directory {disk}/data: No space left on device" in done.stderr
    assert enlarge()
    server.restart()
    server.kill()
