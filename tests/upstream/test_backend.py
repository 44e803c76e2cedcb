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
from kshim.server import StartError
from kshim.server.local import LocalBackend
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.server.steering import new_commands
from kshim.storage.memory import MemoryStore
from kshim.upstream.backend import UpstreamBackend
from kshim.upstream.link import LinkError
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
    """No command steers them. All other commands are those of a local server; only `adopt` is new."""
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
    assert in_front - alone == {"adopt"}
    assert alone - in_front == brokers | {"list-users", "put-user", "remove-user"}
