"""`kshim serve --brokers` and `kshim cluster`, as a user runs them."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.serve.refusals import assert_refused
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end

pytestmark = pytest.mark.kshim_only("it is kshim's own command line")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Shared by tests that do not change it."""
    server = Server(tmp_path_factory.mktemp("shared") / "data", ["--brokers", "3"]).start()
    yield server
    assert server.stop() == 0, server.report()


@pytest.fixture
def brokers(new_server: Callable[..., Server]) -> Server:
    return new_server("--brokers", "3").start()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--brokers", "0"], ["--brokers=0", "1 to 100"]),
        (["serve", "--brokers", "many"], ["--brokers=many", "1 to 100"]),
        (["serve", "--brokers", "101"], ["--brokers=101", "1 to 100"]),
        (["serve", "--brokers", "3", "--listen", "127.0.0.1:65534"], ["--listen=127.0.0.1:65534", "65535"]),
        (["serve", "--brokers", "2", "--advertise", "h:65535"], ["--advertise=h:65535", "65535"]),
        (["cluster", "describe"], ["no server listens", "kshim-data/control.sock", "--data-dir"]),
        (["cluster", "--control", "nowhere", "describe"], ["no server listens", "nowhere"]),
        (["cluster", "sink-broker", "1"], ["sink-broker"]),
        (["cluster", "stop-broker", "one"], ["one", "integer"]),
        (["cluster", "move-leader", "t", "0"], ["--to"]),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    assert_refused(run_to_end(*arguments, cwd=tmp_path), *said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stop-broker", "4"], ["no broker 4", "1, 2, 3"]),
        (["start-broker", "2"], ["broker 2 runs already"]),
        (["move-leader", "nope", "0", "--to", "2"], ["no topic nope", "__consumer_offsets"]),
        (["move-leader", "__consumer_offsets", "50", "--to", "2"], ["partitions 0 to 49"]),
        (["move-leader", "__consumer_offsets", "0", "--to", "0"], ["no broker 0"]),
        (["move-coordinator", "g", "--to", "9"], ["no broker 9"]),
    ],
)
def test_what_the_server_refuses(
    shared: Server, tmp_path: Path, arguments: list[str], said: list[str]
) -> None:
    assert_refused(run_to_end("cluster", "--data-dir", str(shared.data_dir), *arguments, cwd=tmp_path), *said)


def test_brokers_have_consecutive_ports(brokers: Server) -> None:
    ports = [int(address.rpartition(":")[2]) for address in brokers.bootstrap.split(",")]
    assert ports == list(range(brokers.port, brokers.port + 3))
    before = brokers.bootstrap
    brokers.kill()
    assert brokers.restart().bootstrap == before


def test_one_of_the_ports_is_in_use(tmp_path: Path) -> None:
    port = 20_000 + os.getpid() % 10_000  # not one of the ephemeral ports
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        arguments = ["serve", "--listen", f"127.0.0.1:{port - 1}", "--brokers", "2"]
        assert_refused(run_to_end(*arguments, cwd=tmp_path), f"127.0.0.1:{port}", "in use")


def test_a_picture_of_the_cluster(brokers: Server, topic: str) -> None:
    admin = Admin(brokers.bootstrap)
    admin.create_topic(topic, 2, replication_factor=2)
    admin.close()
    brokers.steer("move-leader", topic, 0, "--to", 1)
    brokers.steer("stop-broker", 3)
    lines = brokers.steer("describe").splitlines()
    assert lines[0].startswith("cluster ")
    assert lines[0].endswith(", controller 1")
    assert lines[2].split() == ["Broker", "Address", "State", "Leads"]
    assert [line.split()[2] for line in lines[3:6]] == ["running", "running", "stopped"]
    assert lines[7].split() == ["Topic", "Partition", "Leader", "Epoch", "Replicas", "In", "sync"]
    assert [line.split()[:2] for line in lines[8:]] == [[topic, "0"], [topic, "1"]]
    known = json.loads(brokers.steer("describe", "--json", "--internal"))
    assert len(known["partitions"]) == 52
    assert {p["leader"] for p in known["partitions"]} == {1, 2}


def test_only_the_owner_may_steer(brokers: Server) -> None:
    control = brokers.data_dir / "control.sock"
    assert stat.S_IMODE(control.stat().st_mode) == 0o600
    assert brokers.stop() == 0
    assert not control.exists()


def test_a_killed_server_leaves_nothing_in_the_way(brokers: Server) -> None:
    brokers.kill()
    assert (brokers.data_dir / "control.sock").exists()
    brokers.restart()
    brokers.steer("describe")


def test_a_server_in_memory_is_steered_where_control_says(
    new_server: Callable[..., Server], tmp_path: Path
) -> None:
    place = tmp_path / ("long" * 30)  # longer than the path of a Unix socket may be
    place.mkdir()
    control = str(place / "steer")
    new_server("--control", control, data_dir=Path(":memory:")).start()
    done = run_to_end("cluster", "--control", control, "describe", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", ":memory:", "--control"]
    assert_refused(run_to_end(*arguments, control, cwd=tmp_path), "another server")
    (place / "file").touch()
    assert_refused(run_to_end(*arguments, str(place / "file"), cwd=tmp_path), "no socket")
    assert_refused(run_to_end(*arguments, str(place / "no" / "where"), cwd=tmp_path), "No such file")


def test_nonsense_on_the_control_socket(brokers: Server) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(brokers.data_dir / "control.sock"))
        replies = connection.makefile("rb")
        for line in (b"nonsense", b"[]", b'["stop-broker", ["1"]]', b'["stop-broker", [true]]', b"\xff"):
            connection.sendall(line + b"\n")
            assert b"does not know this command" in replies.readline()
    brokers.steer("describe")
    assert all("INFO" in line for line in brokers.log), brokers.log


@pytest.mark.parametrize("arguments", [[], ["cluster"]])
def test_without_a_command_there_is_help(tmp_path: Path, arguments: list[str]) -> None:
    done = run_to_end(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: kshim")
    assert "\nCommands:\n" in done.stderr
