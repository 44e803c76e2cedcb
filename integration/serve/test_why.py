"""The commands and values that explain the rebalances of a running server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from integration.serve.polling import polling
from integration.support.awaiting import wait_until
from integration.support.server import COMMAND, run_to_end
from kshim.testing import Kshim, serving

pytestmark = pytest.mark.kshim_only("Apache Kafka does not say why a group rebalances")

SETTLED_S = 30


def test_a_test_asserts_on_rebalances() -> None:
    with serving() as kshim:
        topic, group = kshim.topic(partitions=2), kshim.group()
        with polling(kshim.bootstrap, topic, group, client_id="first"):
            alone = kshim.wait_for_rebalance(group)
            with polling(kshim.bootstrap, topic, group, client_id="second"):
                joined = kshim.wait_for_rebalance(group, cause="a member joined", after=alone.generation)
                assert joined in kshim.rebalances(group)
                assert {role.client_id for role in joined.members} == {"first", "second"}
            left = kshim.wait_for_rebalance(group, cause="a member left")
        assert left.by == ("second",)
        assert [(moved.before, moved.after) for moved in left.moved] == [("second", "first")]
        assert {role.client_id: role.gone for role in left.members}["second"] == "left"
        assert f"group {group}, generation {left.generation}: The group rebalanced" in str(left)


def ask(kshim: Kshim, *arguments: str) -> str:
    path = ("--control", str(kshim._control))
    done = run_to_end(*arguments, *path, cwd=Path.cwd(), timeout_s=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands() -> None:
    with serving() as kshim:
        topic, group = kshim.topic(), kshim.group()
        kshim.produce(topic, ["one", "two"])
        with polling(kshim.bootstrap, topic, group, client_id="reader", auto_offset_reset="earliest"):
            kshim.wait_caught_up(group, topic)
        kshim.wait_empty(group)
        (row,) = json.loads(ask(kshim, "groups", "--json"))["groups"]
        assert (row["group_id"], row["state"], row["lag"], row["committed"]) == (group, "Empty", 0, 2)
        assert row["last"]["cause"] == "a member left"
        assert group in ask(kshim, "groups")
        assert group in ask(kshim, "top")
        told = ask(kshim, "why", group)
        assert "The group rebalanced because a member joined: reader" in ask(kshim, "why", group, "1")
        assert "reader left." in told
        assert "The group has no members left." in told
        known = json.loads(ask(kshim, "why", group, "1", "--json"))
        assert [each["generation"] for each in known["rebalances"]] == [1]


def test_what_is_not_known_is_said_in_a_line(tmp_path: Path) -> None:
    with serving() as kshim:
        control = ("--control", str(kshim._control))
        unknown = run_to_end("why", "nobody", *control, cwd=tmp_path)
        assert (unknown.returncode, unknown.stderr) == (2, "kshim: no group nobody\n")
        topic, group = kshim.topic(), kshim.group()
        with polling(kshim.bootstrap, topic, group):
            kshim.wait_for_assignment(group)
        later = run_to_end("why", group, "99", *control, cwd=tmp_path)
        assert later.returncode == 2
        assert later.stderr.startswith(
            f"kshim: group {group}: no rebalance to generation 99; the server has kept 1 to"
        )
    gone = run_to_end("groups", "--data-dir", "nowhere", cwd=tmp_path)
    assert gone.returncode == 2
    assert "no server listens at nowhere" in gone.stderr


def test_the_topic_of_rebalances(tmp_path: Path) -> None:
    with serving(properties={"group.rebalances.topic.enable": "true"}) as kshim:
        topic, group = kshim.topic(), kshim.group()
        with polling(kshim.bootstrap, topic, group, client_id="reader"):
            kshim.wait_for_assignment(group)
        kshim.wait_empty(group)

        def causes() -> list[str]:
            if "kshim.rebalances" not in kshim.topics():
                return []
            found = kshim.consume("kshim.rebalances")
            assert {record.key for record in found} == {group.encode()}
            return [json.loads(record.value or b"")["cause"] for record in found]

        wait_until(lambda: "a member left" in causes(), SETTLED_S, "the rebalances in the topic")
        assert causes()[0] == "a member joined"


def test_a_program_watches() -> None:
    with serving() as kshim:
        command = [*COMMAND, "watch", "--json", "--since-start", "--control", str(kshim._control)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            topic, group = kshim.topic(), kshim.group()
            with polling(kshim.bootstrap, topic, group):
                kshim.wait_for_assignment(group)
            kshim.wait_empty(group)
            assert watching.stdout is not None
            events = [json.loads(watching.stdout.readline()) for _ in range(2)]
            watching.terminate()
    assert [each["event"] for each in events] == ["rebalance began", "rebalance"]
    assert [each["group"] for each in events] == [group, group]
