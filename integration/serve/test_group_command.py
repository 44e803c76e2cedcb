"""`kshim group`, and the same from Python: what real clients see of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.errors import FencedInstanceIdError

from integration.serve.polling import polling
from integration.serve.refusals import assert_refused
from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer
from integration.support.server import Server, run_to_end
from kshim.control.client import ControlError
from kshim.testing import Cluster, Kshim, NewRecord, serving

pytestmark = pytest.mark.kshim_only("it steers kshim's groups")


@pytest.fixture(scope="module")
def kshim() -> Iterator[Kshim]:
    with serving(brokers=2) as kshim:
        yield kshim


@contextmanager
def failing(bootstrap: str, topic: str, group: str, **options: Any) -> Iterator[list[BaseException]]:
    """A consumer that another thread polls, and that commits, until it fails; gives its failures."""
    consumer = new_consumer(bootstrap, topic, group_id=group, heartbeat_interval_ms=300, **options)
    over, failures = threading.Event(), []

    def poll() -> None:
        try:
            while not over.is_set():
                consumer.poll(500)
                consumer.commit()
        except Exception as error:
            failures.append(error)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield failures
    finally:
        over.set()
        thread.join()


def ids(kshim: Kshim, group: str) -> list[str]:
    return [member.member_id for member in kshim.describe_group(group).members]


# ---- members


def test_a_rebalance_that_was_asked_for_keeps_the_members(kshim: Kshim) -> None:
    topic, group = kshim.topic(partitions=2), kshim.group()
    with polling(kshim.bootstrap, topic, group), polling(kshim.bootstrap, topic, group):
        kshim.wait_for_assignment(group, 2)
        before = ids(kshim, group)
        kshim.rebalance(group)
        kshim.wait_for_assignment(group, 2)
        assert ids(kshim, group) == before
    lines = [line for line in kshim.log.splitlines() if f"group {group}: " in line]
    assert any("because an administrator asked for it" in line for line in lines)


@pytest.mark.parametrize("how", ["expire", "remove", "empty"])
def test_a_client_that_is_out_joins_again(kshim: Kshim, how: str) -> None:
    topic, group = kshim.topic(), kshim.group()
    with polling(kshim.bootstrap, topic, group):
        kshim.wait_for_assignment(group, 1)
        (before,) = ids(kshim, group)
        if how == "expire":
            kshim.expire(group, before)
        elif how == "remove":
            kshim.remove(group, before)
        else:
            kshim.empty_group(group)
        (after,) = (member.member_id for member in kshim.wait_for_assignment(group, 1).members)
        assert after != before


def test_a_static_member_that_is_fenced_gives_up_and_can_come_back(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    with failing(kshim.bootstrap, topic, group, group_instance_id="i") as failures:
        kshim.wait_for_assignment(group, 1)
        kshim.fence(group, "i")
        wait_until(lambda: failures, 10, "the client to be told")
    assert [type(failure) for failure in failures] == [FencedInstanceIdError]
    with polling(kshim.bootstrap, topic, group, group_instance_id="i"):
        kshim.wait_for_assignment(group, 1)


def test_a_group_is_deleted_once_it_is_empty(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    with polling(kshim.bootstrap, topic, group):
        kshim.wait_for_assignment(group, 1)
        with pytest.raises(ControlError, match=f"group {group} has members, so it is not deleted"):
            kshim.delete_group(group)
    kshim.wait_empty(group)
    kshim.delete_group(group)
    assert group not in kshim.groups()


# ---- offsets


def first_read(kshim: Kshim, topic: str, group: str) -> int:
    """The offset that a new member of the group reads first."""
    consumer = KafkaConsumer(
        topic, bootstrap_servers=kshim.bootstrap, group_id=group, enable_auto_commit=False
    )
    try:
        offset: int = next(consumer).offset
        return offset
    finally:
        consumer.close()


def test_consumers_go_on_where_they_are_set(kshim: Kshim) -> None:
    topic, group = kshim.topic(retention_ms=-1), kshim.group()
    kshim.produce(topic, [NewRecord(b"v", timestamp_ms=1000 * number) for number in range(10)])
    kshim.set_offsets(group, {(topic, 0): 5})
    assert first_read(kshim, topic, group) == 5
    assert kshim.reset_offsets(group, shift=-2) == {(topic, 0): 3}
    assert first_read(kshim, topic, group) == 3
    assert kshim.reset_offsets(group, to="earliest") == {(topic, 0): 0}
    assert kshim.reset_offsets(group, topic, to="latest") == {(topic, 0): 10}
    assert kshim.reset_offsets(group, to=datetime.fromtimestamp(6.5, UTC)) == {(topic, 0): 7}
    assert first_read(kshim, topic, group) == 7
    with pytest.raises(ValueError, match="either to or shift"):
        kshim.reset_offsets(group)


def test_wherever_the_coordinator_is(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    for node_id in (1, 2):
        kshim.move_coordinator(group, node_id)
        kshim.set_offsets(group, {(topic, 0): node_id})
        assert kshim.offsets(group) == {(topic, 0): node_id}


# ---- the command


def test_the_command(new_server: Callable[..., Server]) -> None:
    server = new_server("--brokers", "2").start()

    def group(*arguments: str) -> list[str]:
        done = run_to_end("group", *arguments, "--data-dir", str(server.data_dir), cwd=server.data_dir)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()

    with polling(server.bootstrap, "t", "g", group_instance_id="i"):
        cluster = Cluster(server.bootstrap)
        (member,) = (member.member_id for member in cluster.wait_for_assignment("g", 1).members)
        assert group("rebalance", "g") == [f"group g rebalances: {member}"]
        cluster.wait_for_assignment("g", 1)
        assert group("expire", "g", member) == [f"group g: the session of {member} has ended"]
        (member,) = (member.member_id for member in cluster.wait_for_assignment("g", 1).members)
        assert group("remove", "g", "i") == [f"group g: {member} is removed"]
        (member,) = (member.member_id for member in cluster.wait_for_assignment("g", 1).members)
    assert group("empty", "g") == [f"group g is empty; removed: {member}"]
    table = ["Topic  Partition  Offset", "t      0          5"]
    assert group("set-offsets", "g", "--topic", "t", "--partition", "0", "--offset", "5") == table
    assert group("reset-offsets", "g", "--to-earliest")[1].split() == ["t", "0", "0"]
    assert group("reset-offsets", "g", "--topic", "t", "--to-time", "2026-01-01T00:00")[1].split()[2] == "0"
    assert group("move-coordinator", "g", "--to", "2")[0].startswith("__consumer_offsets-")
    assert group("delete", "g") == ["group g is deleted"]
    refused = run_to_end("group", "delete", "g", "--data-dir", str(server.data_dir), cwd=server.data_dir)
    assert_refused(refused, "there is no group g")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rebalance"], ["GROUP"]),
        (["expire", "g"], ["MEMBER"]),
        (["set-offsets", "g", "--topic", "t", "--partition", "0"], ["--offset"]),
        (["set-offsets", "g", "--topic", "t", "--partition", "0", "--offset", "five"], ["five", "integer"]),
        (["reset-offsets", "g"], ["--to-earliest", "--to-latest", "--shift", "--to-time"]),
        (["reset-offsets", "g", "--to-latest", "--shift", "1"], ["give one of"]),
        (["reset-offsets", "g", "--to-latest", "--partition", "1"], ["--partition needs --topic"]),
        (["reset-offsets", "g", "--to-time", "noon"], ["noon is no time", "2026-11-23T08:00"]),
        (["empty", "g"], ["no server listens", "--data-dir"]),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    assert_refused(run_to_end("group", *arguments, cwd=tmp_path), *said)
