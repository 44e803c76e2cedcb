"""No command lets a name that a client has chosen steer the terminal, forge a line, or break the command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from twisted.internet.testing import StringTransport

from kshim.check.faults import Fault
from kshim.check.walk import Found
from kshim.cli import check as check_command
from kshim.cli.main import COMMANDS, commands
from kshim.cli.tables import print_table
from kshim.control.client import ControlError
from kshim.control.connection import Connection
from kshim.recorder.one_line import CONTROLS
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.api.harness import AtOnce
from tests.cli.running import Run
from tests.http.harness import Kshim, commit, create_topic, join
from tests.ports_in_memory import Client

NAMES = {
    "colours": "\x1b[31mred\x1b[0m",
    "a title": "\x1b]0;owned\x07",
    "C1": "\x9b31m",
    "no such tag": "[/x]",
    "a tag": "[bold]b",
    "a link": "[link=http://evil.example]b",
    "lines": "a\nkshim: forged\r\n",
    "bidi": "\u202egnp\u2066",
    "long": "n" * 30_000,
}
MOST_LINE_CHARACTERS = 8_000
CTRL_C = 130
OURS = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")
"""What rich itself writes to a terminal."""
SAFE = {
    "serve": "its log is tested in test_logs",
    "demo": "runs clients of its own",
    "apis": "shows nothing of clients",
    "config": "shows nothing of clients",
    "plan": "asks no server",
    "certificates": "shows nothing of clients",
    "clock": "shows nothing of clients",
    "consume": "prints records; tested in test_record_forms",
    "produce": "prints refusals of a cluster on one line",
    "torture": "prints what programs say with print_line, and exits with fail",
    "topic": "prints what a cluster answers with print_table and print_line",
    "adopt": "prints topics and numbers with print_table",
    "pipeline": "prints what clients have chosen with print_table",
}
ASKS: dict[str, Sequence[str]] = {
    "groups": (),
    "top": (),
    "why": ("NAME", "--all"),
    "watch": ("--since-start",),
    "cluster move-coordinator": ("NAME", "--to", "1"),
    "cluster move-leader": ("NAME", "0", "--to", "1"),
    "cluster start-broker": ("1",),
    "cluster stop-broker": ("7",),
    "cluster describe": (),
    "cluster drain": (),
    "fault add": (
        "--api",
        "Heartbeat",
        "--error",
        "NOT_COORDINATOR",
        "--group",
        "NAME",
        "--client-id",
        "NAME",
    ),
    "fault list": (),
    "fault remove": ("1",),
    "group set-offsets": ("NAME", "--topic", "NAME", "--partition", "0", "--offset", "1"),
    "group reset-offsets": ("NAME", "--to-earliest"),
    "group move-coordinator": ("NAME", "--to", "1"),
    "group rebalance": ("NAME",),
    "group expire": ("NAME", "NAME"),
    "group fence": ("NAME", "NAME"),
    "group remove": ("NAME", "nobody"),
    "group empty": ("NAME",),
    "group delete": ("NAME",),
    "users list": (),
    "users remove": ("NAME",),
    "users add": ("NAME", "--password-file", "FILE"),
}
"""The commands that ask a server, with their arguments. NAME stands for the hostile name."""

BY_ADDRESS = ("group describe",)
"""They ask over Kafka's protocol alone, and print with print_table and print_line."""


class World:
    """A server whose groups, members and clients have one name."""

    def __init__(self, name: str) -> None:
        self.kshim = Kshim(http_steering_enable=True)
        vars(self.kshim.parts)["aside"] = AtOnce()
        client = Client(self.kshim.reactor, 1, name)
        create_topic(client, "orders")
        member_id = join(client, self.kshim.reactor, name, {"orders": [0]})
        commit(client, name, "orders", 0, member_id=member_id, generation=1)
        leaving = (MemberIdentity(member_id=member_id, reason=name),)
        left = client.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id=name, members=leaving), 5)
        assert left.error_code == ErrorCode.NONE
        join(client, self.kshim.reactor, name, {"orders": [0]})
        waits = JoinGroupRequest(
            group_id=name,
            group_instance_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range"),),
            reason=name,
        )
        Client(self.kshim.reactor, 1, name).ask(ApiKey.JOIN_GROUP, waits, 8)

    def ask(self, path: Path, command: str, *arguments: Any) -> Any:
        """An answer of the control socket. `events` without events waits for ever: it ends with Ctrl-C."""
        requests = Connection(self.kshim.facts.commands)
        transport = StringTransport()
        requests.makeConnection(transport)
        requests.lineReceived(json.dumps([command, arguments]).encode())
        for _ in range(1000):
            if transport.value().endswith(b"\n"):
                break
            self.kshim.reactor.advance(0.1)
        reply = json.loads(transport.value() or b"null")
        if not reply or (command == "events" and not reply["done"]["events"]):
            raise KeyboardInterrupt
        if "refused" in reply:
            raise ControlError(reply["refused"])
        return reply["done"]


@pytest.fixture(params=list(NAMES))
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[request.param]


@pytest.fixture
def world(name: str) -> World:
    return World(name)


def leaves(group: click.Command, path: str = "") -> Iterator[str]:
    if not isinstance(group, click.Group):
        yield path
        return
    for each in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), each)
        assert found is not None
        yield from leaves(found, f"{path} {each}".strip())


def test_each_command_is_tested_or_safe() -> None:
    asking = [each for each in leaves(commands) if each.split()[0] not in SAFE]
    assert sorted(asking) == sorted([*ASKS, *BY_ADDRESS, "check"])
    assert set(SAFE) < set(COMMANDS)


def check_printed(out: str, name: str, most: int = MOST_LINE_CHARACTERS) -> None:
    printed = OURS.sub("", out)
    assert [line for line in printed.split("\n") if CONTROLS.search(line)] == []
    assert "kshim: forged" not in [line.strip() for line in printed.split("\n")]
    assert "Traceback" not in printed
    assert max(map(len, printed.split("\n"))) < most


@pytest.fixture
def ran(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[[World, str, str], str]:
    """Runs one of ASKS, and returns what it has printed."""

    def ran(world: World, command: str, name: str) -> str:
        (tmp_path / "password").write_text("secret")
        monkeypatch.setattr("kshim.cli.asking.ask", world.ask)
        monkeypatch.setattr("kshim.cli.users.ask", world.ask)
        stands_for = {"NAME": name, "FILE": str(tmp_path / "password")}
        given = [stands_for.get(each, each) for each in ASKS[command]]
        status, out, err = Run(monkeypatch, capsys)(*command.split(), *given)
        assert status in (0, 1, 2, CTRL_C), err
        return out + err

    return ran


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_command_that_asks_a_server_obeys_a_name(
    ran: Callable[[World, str, str], str],
    world: World,
    name: str,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_terminal:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setattr("kshim.cli.top.time.sleep", _interrupted)
    for command in ASKS:
        printed = ran(world, command, name)
        assert printed, command
        check_printed(printed, name)


def _interrupted(seconds: float) -> None:
    raise KeyboardInterrupt


def test_the_faults_of_a_data_directory(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(check_command, "walk_apart", lambda *_: Found((), (Fault("x", name),)))
    _, out, err = Run(monkeypatch, capsys)("check", str(tmp_path))
    check_printed(out + err, name)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_tables_as_the_pipeline_prints_them(
    is_terminal: bool, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    print_table(["group", "topic"], [[name, name]])
    check_printed(capsys.readouterr().out, name)
