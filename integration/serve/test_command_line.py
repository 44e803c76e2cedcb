"""`kshim` as a user runs it: an error is one line and exit status 2, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.errors import KafkaError

from integration.serve.refusals import assert_refused
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer, read_all
from integration.support.handmade import METADATA, Raw, request
from integration.support.server import COMMAND, Server, run_to_end
from kshim.api.api_versions import REFUSED

pytestmark = pytest.mark.kshim_only("it is kshim's own command line")

MIB = 1 << 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--nope"], ["--nope"]),
        (["serve", "--listn", "127.0.0.1:0"], ["--listn", "--listen"]),
        (["serve", "extra"], ["extra"]),
        (["srve"], ["srve"]),
        (["serve", "--listen"], ["--listen"]),
        (["serve", "--listen", "nonsense"], ["nonsense", "HOST:PORT"]),
        (["serve", "--listen", "127.0.0.1:70000"], ["127.0.0.1:70000", "65535"]),
        (["serve", "--listen", "127.0.0.1:-1"], ["127.0.0.1:-1"]),
        (["serve", "--advertise", "127.0.0.1"], ["127.0.0.1", "HOST:PORT"]),
        (["serve", "--set", "num.partitions"], ["num.partitions", "KEY=VALUE"]),
        (["serve", "--set", "=3"], ["=3", "KEY=VALUE"]),
        (["serve", "--set", "num.partitons=3"], ["num.partitons", "num.partitions"]),
        (["serve", "--set", "num.partitions=many"], ["num.partitions", "many", "integer"]),
        (["serve", "--set", "num.partitions=0"], ["num.partitions", "0", "at least 1"]),
        (["serve", "--set", "auto.create.topics.enable=maybe"], ["maybe", "true or false"]),
        (["serve", "--set", "log.message.timestamp.type=Now"], ["Now", "CreateTime", "LogAppendTime"]),
        (["serve", "--config", "missing.properties"], ["missing.properties", "No such file"]),
        (["serve", "--log-level", "loud"], ["loud", "debug", "error"]),
    ],
    ids=" ".join,
)
def test_a_bad_option(tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    assert_refused(run_to_end(*arguments, cwd=tmp_path), *said)
    assert list(tmp_path.iterdir()) == []  # nothing was started


def test_a_bad_line_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=3\ngroup.min.session.timout.ms=1\n")
    result = run_to_end("serve", "--config", "server.properties", cwd=tmp_path)
    assert_refused(result, "group.min.session.timout.ms", "group.min.session.timeout.ms")


@pytest.mark.parametrize("data_dir", ["file", "file/below"])
def test_a_data_dir_that_is_not_writable(tmp_path: Path, data_dir: str) -> None:
    """A file in the place of the directory refuses even root."""
    (tmp_path / "file").write_text("mine")
    result = run_to_end("serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir, cwd=tmp_path)
    assert_refused(result, data_dir)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_data_dir_with_something_else(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.mdb").write_bytes(os.urandom(100_000))
    result = run_to_end("serve", "--listen", "127.0.0.1:0", "--data-dir", "data", cwd=tmp_path)
    assert_refused(result, "data")


def test_a_data_file_that_is_cut_short(new_server: Callable[..., Server], topic: str, tmp_path: Path) -> None:
    """The map of a short file would kill the process."""
    server = new_server().start()
    producer = new_producer(server.bootstrap)
    for _ in range(10):
        producer.send(topic, os.urandom(10_000)).get(timeout=20)
    producer.close()
    server.kill()
    file = server.data_dir / "data.mdb"
    os.truncate(file, file.stat().st_size // 2)
    told = f"{file} is cut short: it has {file.stat().st_size:,} bytes of "
    arguments = ("serve", "--listen", "127.0.0.1:0", "--data-dir", str(server.data_dir))
    assert_refused(run_to_end(*arguments, cwd=tmp_path), told, "put back a copy")
    checked = run_to_end("check", str(server.data_dir), cwd=tmp_path)
    assert checked.returncode == 1
    assert checked.stdout.startswith(told)
    assert checked.stdout.count("\n") == 1


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        result = run_to_end("serve", "--listen", address, "--data-dir", "data", cwd=tmp_path)
    assert_refused(result, address, "in use")


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    result = run_to_end("serve", "--listen", "192.0.2.1:9092", "--data-dir", "data", cwd=tmp_path)
    assert_refused(result, "192.0.2.1:9092")


def test_a_second_server_on_the_same_data_dir(own_server: Server, topic: str, tmp_path: Path) -> None:
    arguments = ("serve", "--listen", "127.0.0.1:0", "--data-dir", str(own_server.data_dir))
    assert_refused(run_to_end(*arguments, cwd=tmp_path), str(own_server.data_dir))
    producer = new_producer(own_server.bootstrap)
    assert producer.send(topic, b"still here").get(timeout=20).offset == 0
    producer.close()
    own_server.kill()
    own_server.restart()  # the lock of a killed server is no obstacle
    assert [r.value for r in read_all(own_server.bootstrap, topic, 1)] == [b"still here"]


# ---- the disk


@contextlib.contextmanager
def tmpfs(path: Path, size_mib: int) -> Iterator[Callable[[int], None]]:
    """Mounts a file system of some size at `path`; gives a function that changes the size."""
    path.mkdir()

    def mount(size: int, *flags: str) -> None:
        options = ",".join(["nr_inodes=1k", f"size={size}m", *flags])
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True)

    mount(size_mib)
    try:
        yield lambda size: mount(size, "remount")
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(server: Server, topic: str) -> int:
    """Produce 100 KB records until one is refused; returns how many were acknowledged."""
    producer = new_producer(server.bootstrap, retries=0, request_timeout_ms=10_000)
    try:
        for number in range(2000):
            try:
                metadata = producer.send(topic, struct.pack(">i", number) + os.urandom(100_000)).get(
                    timeout=20
                )
            except KafkaError:
                return number
            assert metadata.offset == number
        raise AssertionError("the disk was never full")
    finally:
        producer.close(timeout=1)


def assert_there(server: Server, topic: str, count: int) -> None:
    """Each acknowledged record is there once; a refused one may be there behind them."""
    records = read_all(server.bootstrap, topic, count)
    assert [struct.unpack(">i", r.value[:4])[0] for r in records[:count]] == list(range(count))


def complaints(server: Server) -> list[str]:
    return [line for line in server.log if "no space left" in line.lower()]


needs_mount = pytest.mark.skipif(
    (os.geteuid() != 0 or not shutil.which("mount")) and os.environ.get("CI") != "true",
    reason="only root can mount a small tmpfs",
)


@needs_mount
def test_a_disk_that_gets_full(new_server: Callable[..., Server], topic: str, tmp_path: Path) -> None:
    """Acknowledged records are there, before and after a restart; the server goes on when there is room."""
    with tmpfs(tmp_path / "disk", 24) as resize:
        server = new_server(data_dir=tmp_path / "disk" / "data").start()
        count = fill(server, topic)
        assert count > 20
        wait_until(lambda: complaints(server), 5, "a line about the disk")
        assert len(complaints(server)) == 1
        assert not [line for line in server.log if "Traceback" in line]
        assert_there(server, topic, count)
        server.kill()
        resize(64)
        server.restart()
        assert_there(server, topic, count)
        producer = new_producer(server.bootstrap)
        assert producer.send(topic, b"more").get(timeout=20).offset >= count
        producer.close()
        server.kill()


@needs_mount
def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 1):
        with contextlib.suppress(OSError), (tmp_path / "disk" / "ballast").open("wb", 0) as ballast:
            while True:
                ballast.write(bytes(4096))
        result = run_to_end("serve", "--listen", "127.0.0.1:0", "--data-dir", "disk/data", cwd=tmp_path)
        assert_refused(result, "disk/data")


def test_a_file_size_limit(new_server: Callable[..., Server], topic: str) -> None:
    """`ulimit -f` has the same effect as a full disk, and needs no root."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * MIB, 16 * MIB))

    server = new_server(preexec=limit).start()
    count = fill(server, topic)
    assert count > 20
    assert not [line for line in server.log if "Traceback" in line]
    assert_there(server, topic, count)
    server.kill()
    server.preexec = None
    server.restart()
    assert_there(server, topic, count)


# ---- what goes right


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_clean_stop(own_server: Server, signal_number: int) -> None:
    admin = Admin(own_server.bootstrap)
    assert own_server.stop(signal_number) == 0
    assert own_server.stdout == [f"kshim ready {own_server.bootstrap}"]
    assert not [line for line in own_server.log if "Traceback" in line or "ERROR" in line]
    admin.close()


def test_a_clean_stop_without_the_data_directory(own_server: Server) -> None:
    """A test's temporary directory is often gone before its server is stopped."""
    shutil.rmtree(own_server.data_dir)
    assert own_server.stop() == 0
    assert not [line for line in own_server.log if "Traceback" in line or "CRITICAL" in line]


def test_memory_keeps_nothing(new_server: Callable[..., Server], topic: str, tmp_path: Path) -> None:
    server = new_server(data_dir=Path(":memory:")).start()
    admin = Admin(server.bootstrap)
    admin.create_topic(topic)
    assert topic in admin.list_topics()
    admin.close()
    assert server.stop() == 0
    server.restart()
    admin = Admin(server.bootstrap)
    assert topic not in admin.list_topics()
    admin.close()
    assert not Path(":memory:").exists()


def test_the_advertised_address(new_server: Callable[..., Server]) -> None:
    server = new_server("--advertise", "broker.example:19092").start()
    with Raw(server) as client:
        reply = client.answer_to(request(METADATA, 0, struct.pack(">i", 0)))
    node_id, length = struct.unpack(">ih", reply[8:14])
    assert (node_id, reply[14 : 14 + length]) == (1, b"broker.example")
    assert struct.unpack(">i", reply[14 + length : 18 + length]) == (19092,)


def test_a_listener_on_all_addresses_needs_no_setting(new_server: Callable[..., Server], topic: str) -> None:
    """Each client is given the address at which it connected."""
    server = new_server()
    server.host = "0.0.0.0"
    server.start()
    producer = new_producer(f"127.0.0.1:{server.port}")
    assert producer.send(topic, b"arrived").get(timeout=20).offset == 0
    producer.close()


def test_settings_from_a_file_and_the_command_line(
    new_server: Callable[..., Server], topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# mine\nnum.partitions=3\nmessage.max.bytes = 1000000\n")
    server = new_server("--config", str(file), "--set", "num.partitions=5").start()
    producer = new_producer(server.bootstrap)
    producer.send(topic, b"first").get(timeout=20)
    producer.close()
    admin = Admin(server.bootstrap)
    wait_until(lambda: len(admin.partitions(topic)) == 5, 10, "five partitions")
    admin.close()


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_module_is_the_command(tmp_path: Path, option: str) -> None:
    command = Path(sys.executable).with_name("kshim")
    by_name = subprocess.run([command, option], cwd=tmp_path, capture_output=True, text=True, check=True)
    by_module = run_to_end(option, cwd=tmp_path)
    assert by_module.returncode == 0
    assert by_module.stdout == by_name.stdout != ""


def test_the_apis_that_are_served(tmp_path: Path, own_server: Server) -> None:
    """`kshim apis` lists what ApiVersions lists, without the requests that are always refused."""
    listed = {}
    for line in run_to_end("apis", cwd=tmp_path).stdout.splitlines()[1:]:
        key, _, low, _, high = line.split()
        listed[int(key)] = (int(low), int(high))
    with Raw(own_server) as client:
        reply = client.answer_to(request(18, 0))
    ranges = {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", reply[10:])}
    assert ranges.keys() >= REFUSED
    assert {key: versions for key, versions in ranges.items() if key not in REFUSED} == listed
    assert set(listed) >= {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 32, 37, 42, 60}


def test_a_child_ends_when_nobody_holds_its_standard_input(tmp_path: Path) -> None:
    command = [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--data-dir", ":memory:", "--end-with-stdin"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kshim ready ")
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(20) == 0
