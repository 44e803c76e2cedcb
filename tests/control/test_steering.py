"""Steering a cluster: what is done, what is refused, and what the control socket answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twisted.internet.defer import fail
from twisted.internet.testing import StringTransport

from kshim.control.client import short_path
from kshim.control.connection import Connection
from kshim.control.groups import GroupSteering
from kshim.network.listeners import CannotListen
from kshim.storage.interfaces import StorageError
from tests.api.harness import result
from tests.control.steered import Groups, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_leader_moves(world: World) -> None:
    moved = result(world.steering.move_leader("t", 0, 2))
    assert moved == {"topic": "t", "partition": 0, "from": 1, "to": 2, "leader_epoch": 1}
    assert world.leaders() == [2, 2, 3]


def test_a_leader_moves_to_a_broker_that_had_no_replica(world: World) -> None:
    assert result(world.steering.move_leader("alone", 0, 2))["to"] == 2
    assert world.cluster.topics["alone"].partitions[0].replicas == (2,)


def test_a_coordinator_is_the_leader_of_its_groups_partition(world: World) -> None:
    moved = result(world.steering.move_coordinator("seven77", 3))
    assert (moved["topic"], moved["partition"], moved["to"]) == ("__consumer_offsets", 7, 3)


def test_a_group_is_explained() -> None:
    steering = GroupSteering(Groups())
    explained = steering.explain("g")
    assert explained is not None
    assert explained["state"] == "Stable"
    member = {"member_id": "c-1", "client_id": "c", "host": "127.0.0.1", "instance_id": None}
    assert explained["members"] == [member]
    assert steering.explain("unknown") is None


def test_others_lead_before_a_broker_refuses_connections(world: World) -> None:
    led = sum(leader == 3 for leader in world.leaders("__consumer_offsets"))
    stopped = result(world.steering.stop_broker(3))
    assert stopped == {"node_id": 3, "moved": led + 1, "without_leader": 1}
    assert world.history == [f"{led + 2} moved", "3 refuses"]
    assert (world.leaders(), world.leaders("alone")) == ([1, 2, 1], [-1])
    assert world.cluster.running == (1, 2)


def test_a_broker_accepts_connections_before_it_leads(world: World) -> None:
    result(world.steering.stop_broker(3))
    world.history.clear()
    assert result(world.steering.start_broker(3)) == {"node_id": 3, "leads": 1}
    assert world.history == ["3 accepts", "1 moved"]
    assert (world.leaders(), world.leaders("alone")) == ([1, 2, 1], [3])


def test_all_brokers_may_be_stopped(world: World) -> None:
    for node_id in (1, 2, 3):
        result(world.steering.stop_broker(node_id))
    assert (world.cluster.running, world.cluster.controller_id) == ((), -1)
    result(world.steering.start_broker(1))
    assert world.leaders() == [-1, -1, -1]  # only the last in-sync replicas may lead
    result(world.steering.start_broker(3))
    assert world.leaders() == [-1, -1, 3]
    result(world.steering.start_broker(2))
    assert (world.leaders(), world.cluster.running) == ([2, 2, 3], (1, 2, 3))


def test_a_broker_whose_port_is_gone_stays_stopped(world: World) -> None:
    result(world.steering.stop_broker(2))
    world.listeners[2].error = CannotListen("cannot listen at 127.0.0.1:9093: Address already in use")
    assert world.refused(world.steering.start_broker(2)).startswith("cannot listen at 127.0.0.1:9093")
    assert world.cluster.running == (1, 3)


def test_impossible_changes_are_refused(world: World) -> None:
    steering = world.steering
    assert world.refused(steering.stop_broker(4)) == "no broker 4; there are 1, 2, 3"
    assert world.refused(steering.start_broker(1)) == "broker 1 runs already"
    result(steering.stop_broker(1))
    assert world.refused(steering.stop_broker(1)) == "broker 1 is stopped"
    assert world.refused(steering.move_leader("t", 0, 1)) == "broker 1 is stopped"
    assert world.refused(steering.move_leader("x", 0, 2)).startswith("no topic x; there are ")
    assert world.refused(steering.move_leader("t", 3, 2)) == "t has the partitions 0 to 2"
    assert world.refused(steering.move_leader("t", -1, 2)) == "t has the partitions 0 to 2"


def test_what_cannot_be_stored_is_not_done(world: World) -> None:
    world.store.metadata.put = lambda changes: fail(StorageError("the disk is full"))
    assert world.refused(world.steering.stop_broker(1)) == "the disk is full"
    assert (world.cluster.running, world.history) == ((1, 2, 3), [])


def test_a_picture_of_the_cluster(world: World) -> None:
    result(world.steering.stop_broker(3))
    known = world.steering.describe()
    assert known["brokers"][0]["listeners"] == {"PLAINTEXT": "127.0.0.1:9092", "SSL": "127.0.0.1:9192"}
    assert [(b["node_id"], b["address"], b["state"]) for b in known["brokers"]] == [
        (1, "127.0.0.1:9092", "running"),
        (2, "127.0.0.1:9093", "running"),
        (3, "127.0.0.1:9094", "stopped"),
    ]
    of_t = [p for p in known["partitions"] if p["topic"] == "t"]
    assert [(p["leader"], p["leader_epoch"], p["isr"]) for p in of_t] == [
        (1, 0, (1, 2)),
        (2, 0, (2, 1)),
        (1, 1, (1,)),
    ]
    assert {p["topic"] for p in known["partitions"] if p["is_internal"]} == {"__consumer_offsets"}


# ---- the control socket


def ask(world: World, *lines: bytes) -> list[Any]:
    request = Connection(world.steering.commands())
    transport = StringTransport()
    request.makeConnection(transport)
    request.dataReceived(b"".join(line + b"\n" for line in lines))
    return [json.loads(line) for line in transport.value().splitlines()]


def test_requests_are_answered_in_their_order(world: World) -> None:
    stop, lead = b'["stop-broker", [3]]', b'["move-leader", ["t", 0, 3]]'
    assert ask(world, stop, lead, b'["move-leader", ["t", 0, 2]]') == [
        {"done": {"node_id": 3, "moved": 4, "without_leader": 1}},
        {"refused": "broker 3 is stopped"},
        {"done": {"topic": "t", "partition": 0, "from": 1, "to": 2, "leader_epoch": 1}},
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"{}",
        b"[1, 2]",
        b'["nope", []]',
        b'["stop-broker", 1]',
        b'["stop-broker", ["1"]]',
        b'["stop-broker", [true]]',
        b'["stop-broker", [1, 2]]',
        b'[["stop-broker"], [1]]',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_what_is_no_request(world: World, line: bytes) -> None:
    (answer,) = ask(world, line)
    assert "does not know this command" in answer["refused"]
    assert world.cluster.running == (1, 2, 3)


def test_a_command_that_only_the_other_kind_of_server_has(world: World) -> None:
    (answer,) = ask(world, b'["adopt", ["orders"]]')
    assert answer["refused"] == "only a server in front of a Kafka cluster (--upstream) does this"


def test_a_path_that_is_too_long_gets_another_name(tmp_path: Any) -> None:
    with short_path(tmp_path / "control.sock") as short:
        assert len(short) <= 100
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    (deep / "file").write_text("here")
    with short_path(deep / "file") as short:
        assert len(short) < 100
        with open(short) as file:
            assert file.read() == "here"
