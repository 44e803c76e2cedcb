"""Consumers of the consumer protocol (KIP-848), unmodified, with kshim in front of Apache Kafka."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.java.tool import run_to_end
from integration.support import java_member
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.support.story import LIBRDKAFKA, Story, telling
from integration.upstream.committer import Committer
from kshim.testing.wire import Wire
from kshim.upstream.topics import LOOK_S
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

PARTITIONS = 6
GROUP = 32
"""The type of resource."""
SHARED_S = 90
NOTICED_S = 2 * LOOK_S + 60


@pytest.fixture(params=["librdkafka", "java"])
def program(request: pytest.FixtureRequest, class_path: str) -> Sequence[str]:
    """The command that runs a member."""
    return LIBRDKAFKA if request.param == "librdkafka" else java_member.command(class_path)


@pytest.fixture
def trio(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    """Three kshim that share the groups."""
    servers = [Server(tmp_path / f"kshim{number}", ["--upstream", kafka.bootstrap]) for number in (1, 2, 3)]
    try:
        for server in servers:
            server.start()
        wait_until(lambda: all(sharers(each) == 3 for each in servers), 60, "three share the shards")
        yield servers
    finally:
        for server in servers:
            if server.running:
                server.process.send_signal(signal.SIGCONT)
                server.kill()


def sharers(server: Server) -> int:
    """The number of kshim that share the shards, as far as one has logged it."""
    lines = [line for line in server.log if line.endswith(" kshim share them")]
    return int(lines[-1].split("; ")[1].split()[0]) if lines else 0


@pytest.fixture
def admin(kafka: Server) -> Iterator[Admin]:
    """Changes topics at the upstream itself."""
    with contextlib.closing(Admin(kafka.bootstrap)) as admin:
        yield admin


def new_consumer(server: Server, group_id: str, **settings: str) -> Any:
    return Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group_id,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def wait_assigned(consumers: list[Any], *counts: int, timeout_s: float = SHARED_S) -> None:
    def is_assigned() -> bool:
        for each in consumers:
            each.poll(0.02)
        return [len(each.assignment()) for each in consumers] == list(counts)

    wait_until(
        is_assigned, timeout_s, lambda: f"{counts}, not {[len(each.assignment()) for each in consumers]}"
    )


# ---- one kshim


def test_members_share_a_topic_and_the_upstream_gets_their_offsets(
    kafka: Server, kshim: Server, topic: str, tmp_path: Path, program: Sequence[str], admin: Admin
) -> None:
    with telling(kshim.bootstrap, topic, PARTITIONS, "range", tmp_path, protocol="consumer") as story:
        first, second = story.join("first", program), story.join("second", program)
        story.wait_shared(first, second, timeout_s=SHARED_S)
        story.wait_consumed(SHARED_S)
        second.leave()
        story.wait_shared(first, timeout_s=SHARED_S)
        story.wait_consumed(SHARED_S)
        wait_until(
            lambda: set(admin.group_offsets(story.group_id)) == {(topic, each) for each in range(PARTITIONS)},
            30,
            "a copy of each offset at the upstream",
        )


def test_a_group_changes_its_protocol_and_back(
    kshim: Server, topic: str, tmp_path: Path, program: Sequence[str]
) -> None:
    """While members of both protocols are in it, and records come."""
    asking = AdminClient({"bootstrap.servers": kshim.bootstrap})

    def protocol() -> ConsumerGroupType:
        return asking.describe_consumer_groups([story.group_id])[story.group_id].result().type

    with telling(kshim.bootstrap, topic, PARTITIONS, "range", tmp_path) as story:
        old = story.join("old", program)
        story.wait_shared(old, timeout_s=SHARED_S)
        new = story.join("new", program, "consumer")
        story.protocol = "consumer"
        story.wait_shared(old, new, timeout_s=SHARED_S)
        assert protocol() == ConsumerGroupType.CONSUMER
        story.wait_consumed(SHARED_S)
        new.leave()
        story.protocol = "classic"
        story.wait_shared(old, timeout_s=SHARED_S)
        assert protocol() == ConsumerGroupType.CLASSIC
        story.wait_consumed(SHARED_S)


def test_what_changes_at_the_upstream_is_noticed(kshim: Server, topic: str, admin: Admin) -> None:
    """Topics are created, extended and deleted without kshim. `.*` finds all but kshim's own topic."""
    admin.create_topic(topic, 2)
    one, two = new_consumer(kshim, f"{topic}-names"), new_consumer(kshim, f"{topic}-regex")
    three = new_consumer(kshim, f"{topic}-all")
    one.subscribe([topic, f"{topic}-later"])
    two.subscribe([f"^{topic}.*"])
    three.subscribe(["^.*"])
    wait_assigned([one, two], 2, 2)
    wait_until(lambda: three.poll(0.1) or three.assignment(), SHARED_S, "an assignment")
    found = {each.topic for each in three.assignment()}
    assert topic in found
    assert "__kshim_groups" not in found
    admin.add_partitions(topic, 4)
    admin.create_topic(f"{topic}-later", 3)
    wait_assigned([one, two], 7, 7, timeout_s=NOTICED_S)
    admin.delete_topic(topic)
    wait_assigned([one, two], 3, 3, timeout_s=NOTICED_S)
    for each in (one, two, three):
        each.close()


def test_apache_s_tool_describes_a_group_of_the_consumer_protocol(
    kshim: Server, topic: str, class_path: str, admin: Admin
) -> None:
    admin.create_topic(topic, 2)
    consumer = new_consumer(kshim, f"group-{topic}", client_id="reader")
    consumer.subscribe([topic])
    wait_assigned([consumer], 2)
    command = ("consumer.group.ConsumerGroupCommand", "--bootstrap-server", kshim.bootstrap)
    status, shown = run_to_end(class_path, *command, "--describe", "--group", f"group-{topic}", "--members")
    assert status == 0, shown
    (row,) = (line.split() for line in shown.splitlines() if line.startswith(f"group-{topic}"))
    assert "reader" in row, shown
    status, listed = run_to_end(class_path, *command, "--list", "--state")
    assert f"group-{topic}" in listed
    consumer.close()


def test_a_config_of_a_group_is_kept_by_the_upstream_and_obeyed_here(
    kafka: Server, kshim: Server, topic: str
) -> None:
    """It is set through kshim, and then at the upstream itself."""
    group_id = f"group-{topic}"

    def interval_ms() -> int:
        answer = wire.ask(1, replace(join, member_epoch=epoch))
        assert answer.error_code == ErrorCode.NONE
        return int(answer.heartbeat_interval_ms)

    with Wire(kshim.host, kshim.port) as wire, Wire(kafka.host, kafka.port) as there:
        join = ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_names=(topic,)
        )

        def joined() -> Any:
            answer = wire.ask(1, replace(join, topic_partitions=()))
            return None if answer.error_code else answer

        answer = wait_until(joined, SHARED_S, "the coordinator serves the group")
        assert answer.heartbeat_interval_ms == 5_000
        epoch = answer.member_epoch
        for asked, value_ms in ((wire, 7_000), (there, 9_000)):
            config = AlterableConfig(name="consumer.heartbeat.interval.ms", value=str(value_ms))
            resource = AlterConfigsResource(resource_type=GROUP, resource_name=group_id, configs=(config,))
            (altered,) = asked.ask(1, IncrementalAlterConfigsRequest(resources=(resource,))).responses
            assert altered.error_code == ErrorCode.NONE, altered
            wait_until(lambda value_ms=value_ms: interval_ms() == value_ms, NOTICED_S, f"{value_ms} ms")


def test_a_member_commits_in_a_transaction_of_the_upstream(kshim: Server, topic: str, admin: Admin) -> None:
    admin.create_topic(topic, 1)
    consumer = new_consumer(kshim, f"group-{topic}", enable_auto_commit="false")
    consumer.subscribe([topic])
    wait_assigned([consumer], 1)
    producer = Producer({"bootstrap.servers": kshim.bootstrap, "transactional.id": f"id-{topic}"})
    producer.init_transactions(SHARED_S)

    def send(offset: int) -> None:
        producer.begin_transaction()
        where = TopicPartition(topic, 0, offset)
        producer.send_offsets_to_transaction([where], consumer.consumer_group_metadata(), SHARED_S)

    def committed() -> int:
        return int(consumer.committed([TopicPartition(topic, 0)], SHARED_S)[0].offset)

    send(5)
    producer.commit_transaction(SHARED_S)
    assert committed() == 5
    send(9)
    producer.abort_transaction(SHARED_S)
    assert committed() == 5
    consumer.close()


# ---- three kshim


@pytest.mark.parametrize("fault", ["kill", "stop", "freeze"])
def test_members_go_on_at_another_kshim(
    trio: list[Server], topic: str, tmp_path: Path, fault: str, program: Sequence[str]
) -> None:
    """Nothing that was acknowledged is lost, nothing goes back, and no partition has two owners in an epoch.
    Nobody rebalances, unless its own client waits for a process that sleeps until its session is over.
    """
    bootstrap = ",".join(server.bootstrap for server in trio)
    with telling(bootstrap, topic, PARTITIONS, "range", tmp_path, protocol="consumer") as story:
        first, second = story.join("first", program), story.join("second", program)
        story.wait_shared(first, second, timeout_s=SHARED_S)
        story.wait_consumed(SHARED_S)
        epochs = story.generations()
        leader = Committer(trio, story.group_id, topic).leader()
        assert leader is not None
        with undone(leader, fault):
            others = [each for each in trio if each is not leader]
            wait_until(lambda: all(sharers(each) == 2 for each in others), 60, "two share the shards")
            wait_committed(story)
        assert fault == "freeze" or story.generations() == epochs, "nobody had to rebalance"
        wait_committed(story)
        third = story.join("third", program)
        story.reconnect()
        story.wait_shared(first, second, third, timeout_s=SHARED_S)


def wait_committed(story: Story) -> None:
    """Wait until a later offset of each partition is committed."""
    before = dict(story.watch.acknowledged())
    wait_until(
        lambda: all(story.watch.acknowledged()[each] > before[each] for each in before),
        SHARED_S,
        lambda: f"further commits\n{story.report()}",
    )


@contextlib.contextmanager
def undone(leader: Server, fault: str) -> Iterator[None]:
    """Inject the fault into the group's coordinator, and end it afterwards."""
    if fault == "freeze":
        leader.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            leader.process.send_signal(signal.SIGCONT)
        return
    leader.kill() if fault == "kill" else leader.stop()
    yield
