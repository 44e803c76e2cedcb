"""The ports that stand for upstream brokers: opened when one is seen, closed while it is gone."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.network.listeners import CannotListen
from kshim.upstream.brokers import NOBODY, Brokers
from kshim.upstream.indexes import Indexes

HERE = Endpoint("kshim", 9000)


class Port:
    def __init__(self) -> None:
        self.is_open = True
        self.is_taken = False

    def suspend(self) -> Deferred[None]:
        self.is_open = False
        return succeed(None)

    def resume(self) -> Deferred[None]:
        if self.is_taken:
            return fail(CannotListen("cannot listen at 127.0.0.1:9001: Address already in use"))
        self.is_open = True
        return succeed(None)


class Stand:
    def __init__(self) -> None:
        self.ports: dict[int, Port] = {}
        self.taken: set[int] = set()
        self.brokers = Brokers(Indexes(None), self.open)

    def open(self, node_id: int, index: int) -> Port:
        if index in self.taken:
            raise CannotListen(f"cannot listen at port {9000 + index}")
        self.ports[node_id] = Port()
        return self.ports[node_id]

    def update(self, *running: int) -> None:
        self.brokers.update({node_id: address(node_id) for node_id in running})

    def open_ports(self) -> list[int]:
        return [node_id for node_id, port in self.ports.items() if port.is_open]


def address(node_id: int) -> Endpoint:
    return Endpoint("10.0.0.1", 9092 + node_id)


def test_the_port_at_which_other_kshim_find_this_one_stays_open() -> None:
    stand = Stand()
    stand.brokers = Brokers(Indexes(None), stand.open, lambda: True)
    stand.update(5, 6)
    assert stand.brokers.anchor == 5
    stand.update(6)
    assert stand.open_ports() == [5, 6]
    stand.update()
    assert stand.open_ports() == [5]


def test_each_broker_has_a_port() -> None:
    stand = Stand()
    stand.update(5, 3)
    place = stand.brokers.place(3, Endpoint("kshim", 9001))
    assert place(5, address(5)) == Endpoint("kshim", 9000)
    assert place(3, address(3)) == Endpoint("kshim", 9001)
    assert stand.brokers.reach(5, place) == Endpoint("kshim", 9000)
    assert stand.brokers.reach(99, place) is None


def test_a_new_broker_gets_a_port_when_it_is_first_named() -> None:
    stand = Stand()
    stand.update(5)
    assert stand.brokers.place(5, HERE)(6, address(6)) == Endpoint("kshim", 9001)
    assert stand.open_ports() == [5, 6]
    assert stand.brokers.address(6) == address(6)


def test_a_broker_that_moved_is_found_where_it_is_now() -> None:
    stand = Stand()
    stand.update(5)
    stand.brokers.update({5: Endpoint("10.0.0.2", 1)})
    assert stand.brokers.address(5) == Endpoint("10.0.0.2", 1)
    assert len(stand.ports) == 1


def test_the_port_of_a_broker_that_is_gone_refuses_until_it_is_back() -> None:
    stand = Stand()
    stand.update(5, 6)
    stand.update(6)
    assert stand.open_ports() == [6]
    assert stand.brokers.running == (6,)
    assert stand.brokers.addresses() == [address(6), address(5)]
    stand.update(5, 6)
    assert stand.open_ports() == [5, 6]


def test_a_port_that_is_taken_meanwhile_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand()
    stand.update(5, 6)
    stand.update(5)
    stand.ports[6].is_taken = True
    stand.update(5, 6)
    assert stand.open_ports() == [5]
    assert "upstream broker 6 is back, but cannot listen at 127.0.0.1:9001" in caplog.text
    stand.ports[6].is_taken = False
    stand.update(5, 6)
    assert stand.open_ports() == [5, 6]


def test_a_broker_without_a_port_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand()
    stand.taken = {1}
    stand.update(5, 6)
    assert stand.brokers.running == (5,)
    assert stand.brokers.place(5, HERE)(6, address(6)) is None
    assert (
        "upstream broker 6 at 10.0.0.1:9098 cannot be reached here: cannot listen at port 9001" in caplog.text
    )


def test_groups_are_found_at_brokers_that_run() -> None:
    stand = Stand()
    assert stand.brokers.home(7) == NOBODY
    stand.update(5, 6, 9)
    assert [stand.brokers.home(shard) for shard in range(4)] == [5, 6, 9, 5]
    stand.update(5, 9)
    assert {stand.brokers.home(shard) for shard in range(4)} == {5, 9}


def test_brokers_that_share_a_port_have_names() -> None:
    stand = Stand()
    stand.brokers.names = {"SSL": HostPattern("b$(nodeId).kafka.example.com")}
    stand.update(5, 6)
    bootstrap = Endpoint("kafka.example.com", 9093)
    named, counted = (stand.brokers.place(5, bootstrap, name) for name in ("SSL", "PLAINTEXT"))
    assert stand.brokers.reach(6, named) == Endpoint("b6.kafka.example.com", 9093)
    assert stand.brokers.reach(6, counted) == Endpoint("kafka.example.com", 9094)


def test_a_client_that_names_no_known_broker_gets_one_that_runs() -> None:
    stand = Stand()
    assert stand.brokers.serving(None) is None
    stand.update(5, 6, 7)
    assert [stand.brokers.serving(each) for each in (None, 99, 5, 7)] == [5, 5, 5, 7]
    stand.update(7)
    assert [stand.brokers.serving(each) for each in (None, 99, 5, 6, 7)] == [7, 7, None, None, 7]


def test_a_client_of_a_broker_that_is_gone_logs_in_at_another() -> None:
    stand = Stand()
    stand.update(5, 6)
    assert stand.brokers.in_place_of(5) == 5
    stand.update(6)
    assert stand.brokers.in_place_of(5) == 6
    stand.update()
    assert stand.brokers.in_place_of(5) == 5
