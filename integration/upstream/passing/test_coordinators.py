"""Clients log in at each kshim, and each port, that coordinates one of their groups."""

from __future__ import annotations

import uuid
from pathlib import Path

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.upstream.passed_logins import (
    NODES,
    Passing,
    log_in,
    of_librdkafka,
    passing,
)
from integration.upstream.secured import BOB
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ANSWER_S = 60


def test_share_groups_are_reached_in_the_clients_name(kshim: Passing, orders: str) -> None:
    """Each at kshim's port for the upstream's coordinator of the group, where the connection leads."""
    group_ids = [f"g-{orders}-{number}" for number in range(4)]
    request = FindCoordinatorRequest(coordinator_keys=tuple(group_ids))
    with kshim.wire() as wire:
        log_in(wire)
        wait_until(lambda: not any(it.error_code for it in wire.ask(4, request).coordinators), 30, "all")
        at = {each.key: each.port for each in wire.ask(4, request).coordinators}
    producer = Producer(of_librdkafka(kshim))
    members = {each: ShareConsumer(of_librdkafka(kshim) | {"group.id": each}) for each in group_ids}
    for member in members.values():
        member.subscribe([orders])
    waiting = set(group_ids)

    def have_read() -> bool:  # a new share group begins at the end
        producer.produce(orders, b"x")
        producer.flush(5)
        for group_id in list(waiting):
            if any(not each.error() for each in members[group_id].poll(0.2)):
                waiting.discard(group_id)
        return not waiting

    wait_until(have_read, ANSWER_S, lambda: f"{waiting} of {at}\n{kshim.server.report()}")
    for member in members.values():
        member.close()
    first = int(kshim.address("CLEAR").rpartition(":")[2])
    with kshim.wire(node=at[group_ids[0]] - first) as wire:
        log_in(wire, BOB)
        heartbeat = ShareGroupHeartbeatRequest(
            group_id=group_ids[0],
            member_id=str(uuid.uuid4()),
            member_epoch=0,
            subscribed_topic_names=(orders,),
        )
        assert wire.ask(1, heartbeat).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_several_kshim_share_the_groups(
    nodes: Nodes, kshim: Passing, tmp_path: Path, certificates: Path, orders: str
) -> None:
    """A client logs in at each kshim that coordinates one of its groups; the other's groups go on here."""
    group_ids = [f"g-{number * 7919}-{orders}" for number in range(8)]  # in shards far from each other
    request = FindCoordinatorRequest(coordinator_keys=tuple(group_ids))

    def commit(offset: int) -> None:
        for group_id in group_ids:
            consumer = Consumer(of_librdkafka(kshim) | {"group.id": group_id})
            offsets = [TopicPartition(orders, 0, offset)]
            (committed,) = consumer.commit(offsets=offsets, asynchronous=False)
            assert committed.error is None
            consumer.close()

    def ports() -> set[int]:
        with kshim.wire() as wire:
            log_in(wire)
            return {each.port for each in wire.ask(4, request).coordinators}

    with passing(nodes, "LOGIN", tmp_path, certificates) as other:
        theirs = range(other.server.port, other.server.port + NODES)
        wait_until(
            lambda: ports() & set(theirs) and not ports() <= set(theirs),
            ANSWER_S,
            lambda: f"{ports()}\n{kshim.server.report()}\n{other.server.report()}",
        )
        commit(1)
        assert "authenticated as User:alice with SCRAM-SHA-512" in "\n".join(other.server.log)
        other.server.stop()
    wait_until(lambda: not ports() & set(theirs), ANSWER_S, kshim.server.report)
    commit(2)
