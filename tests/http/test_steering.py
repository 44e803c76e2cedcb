"""Commands over HTTP: those of the control socket, if they are let in."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.control.commands import READING
from tests.http.harness import Kshim, Reply

JSON = {"Content-Type": "application/json; charset=utf-8"}


@pytest.fixture
def kshim() -> Kshim:
    return Kshim(http_steering_enable=True, brokers=2)


def post(kshim: Kshim, command: str, body: bytes) -> Reply:
    return kshim.ask("POST", f"/commands/{command}", JSON, body)


def test_commands_that_change_something_are_not_taken_unless_they_are_let_in() -> None:
    kshim = Kshim()
    for command in ("move-leader", "empty-group", "list-users", "unknown"):
        reply = post(kshim, command, b"[]")
        assert reply.status == 403
        assert "http.steering.enable=true" in reply.json["error"]


def test_commands_that_read_are_always_taken() -> None:
    kshim = Kshim()
    of_several = {"groups-here", "why-here"}
    assert set(kshim.get("/commands").json["commands"]) == READING - of_several
    assert post(kshim, "describe", b"[]").json["done"]["controller_id"] == 1
    assert post(kshim, "events", b"[-1, 0]").json["done"]["events"] == []


def test_a_command_is_run(kshim: Kshim) -> None:
    reply = post(kshim, "move-leader", b'["__consumer_offsets", 0, 2]')
    assert (reply.status, reply.json["done"]["to"]) == (200, 2)
    assert kshim.facts.cluster.topics["__consumer_offsets"].partitions[0].leader == 2


def test_a_refusal_is_told(kshim: Kshim) -> None:
    reply = post(kshim, "stop-broker", b"[7]")
    assert (reply.status, reply.json) == (409, {"error": "no broker 7; there are 1, 2"})


@pytest.mark.parametrize(
    "body", [b"", b"{", b"1", b'["t"]', b'["t", "0", 1]', b"[" * 50_000, b'["t", true, 1]']
)
def test_other_arguments(kshim: Kshim, body: bytes) -> None:
    reply = post(kshim, "move-leader", body)
    expected: Any = {"error": "expected a JSON array of its arguments: [string, integer, integer]"}
    assert (reply.status, reply.json) == (400, expected)


def test_all_commands_are_listed(kshim: Kshim) -> None:
    listed = kshim.get("/commands").json["commands"]
    assert set(listed) == set(kshim.facts.commands)
    assert listed["move-coordinator"] == ["string", "integer"]
