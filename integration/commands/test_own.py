"""Commands that need kshim: over its HTTP interface, and one line with another cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.commands.running import Kshim
from integration.serve.polling import polling
from integration.support.awaiting import wait_until
from integration.support.ports import Slot
from integration.support.server import Server

TOKEN = "hocus-pocus"
OWN = (
    ["why", "readers"],
    ["watch"],
    ["fault", "list"],
    ["clock", "now"],
    ["adopt", "readers"],
    ["group", "rebalance", "readers"],
    ["cluster", "stop-broker", "1"],
)


@pytest.fixture(scope="module")
def slot() -> Slot:
    return Slot()


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory, slot: Slot) -> Iterator[Server]:
    """A server with its data in memory, a token, and an HTTP interface at a port that it can announce."""
    options = ["--control", str(tmp_path_factory.mktemp("steered") / "control.sock")]
    options += ["--http", f"127.0.0.1:{slot.port}"]
    options += ["--set", f"http.token={TOKEN}", "--set", "http.steering.enable=true"]
    server = Server(Path(":memory:"), options)
    yield server.start()
    assert server.stop() == 0, server.report()


@pytest.fixture
def far(steered: Server, tmp_path: Path) -> Kshim:
    return Kshim(steered.bootstrap, tmp_path, KSHIM_HTTP_TOKEN=TOKEN)


def test_why_and_steering_by_address(far: Kshim, topic: str) -> None:
    far("topic", "create", topic)
    with polling(far.bootstrap, topic, topic):
        wait_until(lambda: f"Group {topic} is Stable" in far("why", topic), 60, lambda: "a stable group")
        far("group", "rebalance", topic)
        wait_until(lambda: len(far.json("why", topic)["rebalances"]) >= 2, 60, lambda: "another generation")
        (listed,) = [each for each in far.json("groups")["groups"] if each["group_id"] == topic]
        assert listed["scores"]["rebalances"] >= 2
    assert far("fault", "add", "--api", "Heartbeat", "--error", "NOT_COORDINATOR").startswith("fault 1: ")
    assert far("fault", "remove", "--all") == "removed: 1\n"
    assert far("clock", "now").endswith("UTC\n")
    assert topic in far("cluster", "describe")
    assert topic in far("cluster", "-b", far.bootstrap, "describe")


def test_a_wrong_token(steered: Server, tmp_path: Path) -> None:
    line = Kshim(steered.bootstrap, tmp_path, KSHIM_HTTP_TOKEN="abracadabra").refusal("why", "readers")
    assert line.startswith("expected the token (http.token)")


def test_an_interface_at_a_port_that_kshim_cannot_announce(kshim_server: Server, tmp_path: Path) -> None:
    kshim = Kshim(kshim_server.bootstrap, tmp_path)
    assert "has picked a free port for its HTTP interface" in kshim.refusal("why", "readers")
    (http,) = [line.split()[-1] for line in kshim_server.stdout if line.startswith("kshim http ")]
    assert kshim.refusal("why", "readers", "--http", http) == "no group readers"
    line = kshim.refusal("group", "rebalance", "readers", "--http", http)
    assert line.endswith("start the server with http.steering.enable=true")


@pytest.mark.parametrize("arguments", OWN, ids=" ".join)
def test_another_cluster_is_one_line(kafka_server: Server, tmp_path: Path, arguments: list[str]) -> None:
    line = Kshim(kafka_server.bootstrap, tmp_path).refusal(*arguments)
    assert line.startswith(f"only kshim can do this, over HTTP: broker {kafka_server.bootstrap} is not kshim")


def test_commands_of_both(kshim: Kshim) -> None:
    assert "Metadata" in kshim("apis")
    assert kshim.bootstrap in kshim("cluster", "describe")
    assert kshim("users", "list").startswith("User")
    assert kshim("top").startswith("Group")
