"""Which server a command asks: the nearer of its options counts, then the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kshim.cli.asking import ByAddress, ByControlSocket, OnlyKshim, Server, of_running_server
from kshim.client.faults import ClientError
from kshim.client.http_commands import NoHttp

BOOTSTRAP = {"KSHIM_BOOTSTRAP": "kafka1:9092"}


@click.group()
@of_running_server
@click.pass_context
def outer(context: click.Context, server: Server) -> None:
    context.obj = server


@outer.command()
@of_running_server
def inner(server: Server) -> None:
    found.append(server)


@click.command()
@of_running_server
def alone(server: Server) -> None:
    found.append(server)


found: list[Server] = []


def asked(command: click.Command, *arguments: str, **environment: str) -> Server:
    """The server that a command would ask."""
    found.clear()
    done = CliRunner().invoke(command, arguments, env=environment, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (server,) = found
    return server


def bootstrap(server: Server) -> str | None:
    assert isinstance(server, ByAddress)
    return server.address.bootstrap


def test_without_options_a_command_asks_the_server_of_the_usual_directory() -> None:
    assert asked(alone) == ByControlSocket(Path("kshim-data/control.sock"))
    assert asked(alone, "--data-dir", "d") == ByControlSocket(Path("d/control.sock"))
    assert asked(alone, "--control", "s") == ByControlSocket(Path("s"))


def test_an_address() -> None:
    assert bootstrap(asked(alone, "-b", "k:1")) == "k:1"
    assert bootstrap(asked(alone, **BOOTSTRAP)) == "kafka1:9092"
    assert bootstrap(asked(alone, "-b", "k:1", **BOOTSTRAP)) == "k:1"


def test_a_directory_that_is_named_counts_for_more_than_the_environment() -> None:
    assert isinstance(asked(alone, "--data-dir", "d", **BOOTSTRAP), ByControlSocket)
    assert isinstance(asked(alone, "--control", "s", **BOOTSTRAP), ByControlSocket)


def test_the_http_interface_alone_is_an_address() -> None:
    server = asked(alone, "--http", "k:80", KSHIM_HTTP_TOKEN="t")
    assert isinstance(server, ByAddress)
    assert (server.http, server.token, server.address.bootstrap) == ("k:80", "t", None)


def test_a_command_of_a_group_takes_the_groups_server_unless_it_names_one() -> None:
    assert bootstrap(asked(outer, "-b", "k:1", "inner")) == "k:1"
    assert bootstrap(asked(outer, "inner", "-b", "k:2")) == "k:2"
    assert bootstrap(asked(outer, "-b", "k:1", "inner", "-b", "k:2")) == "k:2"
    assert isinstance(asked(outer, "--data-dir", "d", "inner", **BOOTSTRAP), ByControlSocket)
    assert bootstrap(asked(outer, "--data-dir", "d", "inner", "-b", "k:1")) == "k:1"


# ---- by address


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An answer over HTTP: a value, or an error. `ran` is what was run over it."""
    answers: dict[str, Any] = {"ran": []}

    def find_http(cluster: object) -> object:
        if isinstance(answers.get("endpoint"), Exception):
            raise answers["endpoint"]
        return answers.get("endpoint")

    def run(endpoint: object, token: str, command: str, arguments: tuple[object, ...]) -> object:
        answers["ran"].append((token, command, arguments))
        if isinstance(answers["http"], Exception):
            raise answers["http"]
        return answers["http"]

    monkeypatch.setattr("kshim.client.http_commands.find_http", find_http)
    monkeypatch.setattr("kshim.client.http_commands.run_over_http", run)
    by_kafka = {"groups": lambda cluster: "by kafka", "delete-group": lambda cluster, name: f"no more {name}"}
    monkeypatch.setattr("kshim.cli.by_kafka.BY_KAFKA", by_kafka)
    return answers


def far() -> ByAddress:
    server = asked(alone, "-b", "127.0.0.1:1", "--http-token", "t")
    assert isinstance(server, ByAddress)
    return server


def test_kafkas_protocol_is_used_where_it_suffices(world: dict[str, Any]) -> None:
    assert far().ask("delete-group", "g") == "no more g"
    assert world["ran"] == []


def test_other_commands_go_over_http(world: dict[str, Any]) -> None:
    world["http"] = {"now_ms": 1}
    assert far().ask("why", "g") == {"now_ms": 1}
    assert world["ran"] == [("t", "why", ("g",))]


def test_what_kshim_knows_better_goes_over_http_where_there_is_http(world: dict[str, Any]) -> None:
    world["http"] = "over HTTP"
    assert far().ask("groups") == "over HTTP"
    world["endpoint"] = NoHttp("broker 127.0.0.1:1 is not kshim")
    assert far().ask("groups") == "by kafka"


def test_another_cluster_is_one_line(world: dict[str, Any]) -> None:
    world["endpoint"] = NoHttp("broker 127.0.0.1:1 is not kshim")
    with pytest.raises(OnlyKshim) as refused:
        far().ask("why", "g")
    assert str(refused.value) == (
        "only kshim can do this, over HTTP: broker 127.0.0.1:1 is not kshim; "
        "name its HTTP interface with --http or KSHIM_HTTP"
    )


def test_a_refusal_over_http_is_one_line(world: dict[str, Any]) -> None:
    world["http"] = ClientError("expected the token")
    with pytest.raises(click.ClickException, match="expected the token"):
        far().ask("why", "g")
