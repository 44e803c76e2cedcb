"""Start and stop in front of an upstream. A failed start says why in one line, and leaves nothing open."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.testing import MemoryReactorClock

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.reading import new_config
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.http.families import FAMILIES
from kshim.server import StartError
from kshim.server.local import LocalBackend
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.server.steering import new_commands
from kshim.storage.memory import MemoryStore
from kshim.upstream.backend import UpstreamBackend
from kshim.upstream.draining import DRAINS
from kshim.upstream.link import LinkError
from kshim.upstream.looking import LOOK_S
from kshim.upstream.shards.mirrored import STOP_S
from schemas.api_key import ApiKey
from schemas.internal_topics.group_metadata_log import OffsetCommitValue
from tests.api.harness import result
from tests.network.free_ports import Reactor
from tests.upstream.backend_world import World
from tests.upstream.link_end import SERVED, Upstream

MODULES = "org.apache.kafka.common.security"
BOOTSTRAP = {
    "upstream.bootstrap.servers": "10.0.0.1:9092",
    "log.dirs": ":memory:",
    "listeners": "127.0.0.1:0",
}


def why_not(connect: Any = None, **given: str) -> str:
    """The line with which a start ends. connect: makes the first link."""
    reactor = MemoryReactorClock()
    properties = {name.replace("_", "."): text for name, text in given.items()}
    parts = Parts(new_config(BOOTSTRAP | properties)[0], reactor)
    backend = UpstreamBackend(parts)
    server = Server(parts, backend)
    if connect is not None:
        backend._contact.connect = connect
    with pytest.raises(StartError) as failed:
        result(server.start())
    assert not reactor.getDelayedCalls()
    assert not reactor.tcpServers
    return str(failed.value)


def test_an_upstream_that_is_too_old() -> None:
    """Kafka 2.7 has Metadata v9: no ids of topics."""
    old = [each for each in SERVED if each.api_key != ApiKey.METADATA]
    of_27 = type(SERVED[0])(api_key=ApiKey.METADATA, min_version=0, max_version=9)
    upstream = Upstream((*old, of_27)).negotiate()

    def connect(address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(upstream.link)

    assert why_not(connect) == (
        "upstream broker 10.0.0.1:9092 is older than Kafka 2.8: it has no topic ids (Metadata v10)"
    )
    assert not upstream.link.is_open


def test_an_upstream_that_refuses_the_login_is_not_tried_again() -> None:
    tried = []

    def connect(address: Endpoint, timeout_s: float) -> Deferred[Any]:
        tried.append(address)
        error = LinkError("upstream broker 10.0.0.1:9092 refuses the login by PLAIN: No.")
        error.is_refused = True
        return fail(error)

    assert why_not(connect) == "upstream broker 10.0.0.1:9092 refuses the login by PLAIN: No."
    assert len(tried) == 1


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    path = str(tmp_path / "ca.pem")
    line = why_not(upstream_security_protocol="SSL", upstream_ssl_truststore_location=path)
    assert line == f"upstream.ssl.truststore.location: cannot read {path}: No such file or directory"


def test_a_file_of_settings_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "client.properties")
    line = why_not(upstream_config_file=path)
    assert line.startswith(f"upstream.config.file: cannot read {path}: ")
    assert "No such file or directory" in line


def test_an_option_that_is_no_number() -> None:
    options = 'unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="long"'
    line = why_not(
        upstream_security_protocol="SASL_PLAINTEXT",
        upstream_sasl_mechanism="OAUTHBEARER",
        upstream_sasl_jaas_config=f"{MODULES}.oauthbearer.OAuthBearerLoginModule required {options};",
    )
    assert line.startswith("upstream.sasl.jaas.config: could not convert string to float")


def test_each_running_broker_has_a_port(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    first, second = Endpoint("127.0.0.1", 5000), Endpoint("127.0.0.1", 5001)
    assert result(world.server.start()) == {"PLAINTEXT": [first, second]}
    assert world.happened == ["prepare", "start at 127.0.0.1:5000"]
    assert caplog.messages[-1].endswith(": in front of cluster c, at 127.0.0.1:5000, 127.0.0.1:5001")


@pytest.mark.parametrize("copies_offsets", ["false", "true"])
def test_a_stop_gives_up_the_groups_then_the_shards(copies_offsets: str) -> None:
    world = World(upstream_offsets_mirror_enable=copies_offsets)
    result(world.server.start())
    world.backend._note(ExpiryReport("g", {("t", 0): OffsetCommitValue(offset=1)}, is_deleted=False))
    if world.backend._mirrored is not None:
        world.backend._mirrored.watch()  # a shard was taken over, so copies are compared soon
    stopped = world.server.stop()
    assert len(world.happened) == (2 if world.backend._mirrored is not None else 3)
    world.reactor.advance(STOP_S)  # copies are sent while the shards are led, but the upstream takes none
    result(stopped)
    assert world.happened[2:] == ["stop; ports [], groups stopped"]
    assert world.reactor.getDelayedCalls() == []
    assert not world.link.is_open


def test_a_port_that_is_taken_ends_the_start() -> None:
    world = World()
    world.reactor.taken.add(5001)
    with pytest.raises(StartError, match=r"cannot listen at 127\.0\.0\.1:5001: Address already in use"):
        result(world.server.start())
    assert world.happened == ["prepare", "stop; ports [], groups stopped"]
    assert world.reactor.getDelayedCalls() == []
    assert not world.link.is_open


@pytest.mark.parametrize("step", ["prepare", "start"])
def test_a_stop_while_the_shards_do_something_ends_the_start(step: str) -> None:
    world, done = World(), Deferred[None]()
    vars(world.backend._shards)[step] = lambda *_: done
    started = world.server.start()
    result(world.server.stop())
    done.callback(None)
    with pytest.raises(StartError, match="stopped before it was ready"):
        result(started)
    assert world.reactor.open == []
    assert world.reactor.getDelayedCalls() == []


def test_brokers_and_users_are_the_upstream_s() -> None:
    """No command steers them. All other commands are those of a local server; `adopt`, `drain` and those
    about the groups of one of several kshim are new.
    """
    here = World()
    result(here.server.start())
    parts = Parts(Config(log_dirs=":memory:", listeners="127.0.0.1:0"), Reactor(free=(5000,)))
    local = Server(parts, LocalBackend(parts, MemoryStore()))
    result(local.start())
    assert here.server._ports is not None
    assert local._ports is not None
    in_front = set(new_commands(here.parts, here.server._ports, here.backend))
    alone = set(new_commands(parts, local._ports, local._backend))
    brokers = {"describe", "move-leader", "move-coordinator", "stop-broker", "start-broker"}
    assert in_front - alone == {"adopt", "adopt-matching", "drain", "groups-here", "why-here"}
    assert alone - in_front == brokers | {"list-users", "put-user", "remove-user"}


def test_a_server_is_not_ready_while_the_upstream_does_not_answer() -> None:
    world = World()
    result(world.server.start())
    assert world.backend.why_not_ready() == ""
    world.link.answers = False
    world.reactor.advance(LOOK_S)
    assert world.backend.why_not_ready() == "the upstream does not answer"
    world.link.answers = True
    world.reactor.advance(LOOK_S)
    assert world.backend.why_not_ready() == ""


def test_a_server_that_serves_no_groups_is_not_ready() -> None:
    world = World()
    result(world.server.start())
    world.shards.fault = "no shard is led"
    assert world.backend.why_not_ready() == "no shard is led"
    world.backend._draining.has_begun = True
    assert world.backend.why_not_ready() == DRAINS


def test_the_figures_of_an_upstream() -> None:
    world = World()
    result(world.server.start())
    world.link.running = (2,)
    world.reactor.advance(LOOK_S)
    found = {
        (figure.name.removeprefix("kshim_upstream_"), *figure.labels): figure.value
        for figure in world.backend.figures()
    }
    assert found == {
        ("answers",): 1,
        ("broker_runs", "1"): 0,
        ("broker_runs", "2"): 1,
        ("shards_assigned",): 1,
        ("shards_led",): 1,
        ("shards_taken_over",): 3,
        ("shards_lost",): 2,
        ("proof_age_seconds",): 0.1,
        ("journal_queued_writes",): 4,
        ("journal_lag_seconds",): 0.5,
        ("offsets_uncopied",): 0,
        ("offsets_lag_seconds",): 0,
    }
    assert {figure.name for figure in world.backend.figures()} <= set(FAMILIES)
    world.link.answers = False
    world.reactor.advance(LOOK_S)
    assert not any(figure.value for figure in world.backend.figures() if "broker_runs" in figure.name)
    stopped = world.server.stop()
    world.reactor.advance(STOP_S)
    result(stopped)


def test_the_other_processes_are_told_of_a_new_port() -> None:
    world = World()
    result(world.server.start())
    assert world.shards.ports() == {1: 0, 2: 1}
    world.link.running = (1, 2, 5)
    world.reactor.advance(LOOK_S)
    world.reactor.advance(LOOK_S)
    assert world.happened[2:] == ["tell of ports {1: 0, 2: 1, 5: 2}"]


@pytest.mark.parametrize(("listeners", "is_warned"), [("0.0.0.0:0", True), ("127.0.0.1:0", False)])
def test_a_server_without_an_address_for_clients_warns(
    listeners: str, caplog: pytest.LogCaptureFixture, *, is_warned: bool
) -> None:
    world = World(listeners=listeners)
    result(world.server.start())
    line = (
        "listening at 0.0.0.0:5000 without --advertise: clients are told the address by which they have come"
    )
    assert any(each.startswith(line) for each in caplog.messages) is is_warned
