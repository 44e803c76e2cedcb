"""Clients log in to Apache Kafka through kshim: its ACLs, quotas and errors are those of each client."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ShareConsumer, TopicPartition

from integration.apache_kafka.nodes import Nodes
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.security.cells import MECHANISMS, PASSWORD, USER, WRONG, Cell
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import run_to_end, set_options
from integration.support.toolchain import or_skip
from integration.upstream.passed_logins import (
    NODES,
    OURS,
    Passing,
    address_of,
    allow,
    of_kshim,
    passing,
    upstream,
)
from integration.upstream.secured import BOB, SESSION_MS, arguments
from kshim.authentication.client import Scram
from kshim.authentication.scram_credential import ScramMechanism
from kshim.cluster.acl import AclOperation, AclResource
from kshim.configs.values import Secret
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataRequest
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ANSWER_S = 60
WAYS = {"LOGIN": "CLEAR", "LOGINTLS": "SECRET"}
"""kshim's listener that is tried in front of each listener of the upstream."""
JAVA = "kafka-clients-4.4"
RIGHT = f"\0{USER}\0{PASSWORD}".encode()
NewDriver = Callable[..., Driver]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates") / "made"
    subprocess.run(
        [sys.executable, "-m", "kshim", "certificates", str(directory)], check=True, capture_output=True
    )
    return directory


@pytest.fixture(scope="module")
def nodes(class_path: str, tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Nodes]:
    nodes = upstream(tmp_path_factory.mktemp("upstream"), certificates)
    yield nodes
    nodes.kill()


@pytest.fixture(scope="module")
def through(
    nodes: Nodes, tmp_path_factory: pytest.TempPathFactory, certificates: Path
) -> Iterator[Callable[[str], Passing]]:
    """through(listener): kshim in front of that listener of the nodes."""
    started: dict[str, Passing] = {}
    with ExitStack() as stack:

        def to(listener: str) -> Passing:
            if listener not in started:
                directory = tmp_path_factory.mktemp("kshim")
                started[listener] = stack.enter_context(passing(nodes, listener, directory, certificates))
            return started[listener]

        yield to
        for each in started.values():
            log = "\n".join(each.server.log)
            assert "Traceback" not in log
            assert PASSWORD not in log
            assert WRONG not in log


@pytest.fixture
def kshim(through: Callable[[str], Passing]) -> Passing:
    return through("LOGIN")


@pytest.fixture
def orders(nodes: Nodes, topic: str) -> str:
    """A topic with a partition at each node, which USER may use."""
    admin = Admin(nodes.servers[1].bootstrap)
    admin.create_topic(f"t-{topic}", NODES)
    wait_until(lambda: len(set(admin.partitions(f"t-{topic}").values())) == NODES, ANSWER_S, "leaders")
    admin.close()
    return f"t-{topic}"


@pytest.fixture
def new_driver() -> Iterator[NewDriver]:
    """new_driver(client, kshim, listener, mechanism, user): a driver at that listener of kshim."""
    drivers: list[Driver] = []

    def new(client: str, kshim: Passing, listener: str, mechanism: str, **told: str) -> Driver:
        with or_skip(client):
            command = CLIENTS[client].command()
        cell = Cell(listener, OURS[listener], mechanism)
        environment = cell.environment(kshim.certificates, **told)
        drivers.append(Driver(command, kshim.address(listener), environment))
        return drivers[-1]

    yield new
    for driver in drivers:
        driver.stop()


TRIED = [
    (client, listener, mechanism)
    for client in ("kafka-python", "confluent-kafka", JAVA)
    for listener in WAYS
    for mechanism in MECHANISMS
    if client != JAVA or mechanism in ("SCRAM-SHA-256", "OAUTHBEARER")
]


@pytest.mark.parametrize(("client", "listener", "mechanism"), TRIED)
def test_the_upstreams_acls_decide(
    client: str,
    listener: str,
    mechanism: str,
    through: Callable[[str], Passing],
    new_driver: NewDriver,
    orders: str,
) -> None:
    """USER writes to the leaders at both nodes and reads in a group; BOB may do neither."""
    kshim = through(listener)
    alice = new_driver(client, kshim, WAYS[listener], mechanism)
    records = [{"key": "k", "value": f"v{number}", "partition": number} for number in range(NODES)]
    alice.produce(topic=orders, records=records)
    alice.open(name="c", topics=[orders], group=f"g-{orders}", assignors=["range"])
    found: list[dict[str, str]] = []

    def are_read() -> bool:
        found.extend(alice.take(name="c", count=NODES, timeout_ms=1000))
        return len(found) == NODES

    wait_until(are_read, ANSWER_S, kshim.server.report)
    assert {record["value"] for record in found} == {"v0", "v1"}
    alice.close(name="c")
    assert orders in alice.topics()

    bob = new_driver(client, kshim, WAYS[listener], mechanism, user=BOB)
    assert orders in bob.topics()
    with pytest.raises(ClientError, match=r"(?i)topic.*authori[sz]"):
        bob.produce(topic=orders, records=records[:1])
    bob.open(name="c", topics=[orders], group=f"g-{orders}", assignors=["range"])
    with pytest.raises(ClientError, match=r"(?i)group.*authori[sz]"):
        wait_until(lambda: bob.take(name="c", count=1, timeout_ms=1000), ANSWER_S, "a refusal")


def test_tls_ends_at_kshim(kshim: Passing, new_driver: NewDriver, orders: str) -> None:
    """SCRAM's exchange passes, though the client speaks TLS and the upstream's listener does not."""
    driver = new_driver("confluent-kafka", kshim, "SECRET", "SCRAM-SHA-256")
    driver.produce(topic=orders, records=[{"key": "k", "value": "v", "partition": 1}])


# ---- errors are the upstream's


def said(wire: Wire, mechanism: str, first: bytes) -> tuple[Any, ...]:
    """What a broker answers to a handshake and a token, until the connection is closed."""
    answer = wire.ask(1, SaslHandshakeRequest(mechanism=mechanism))
    told: list[Any] = [answer.error_code, sorted(answer.mechanisms)]
    if not answer.error_code:
        authenticated = wire.ask(2, SaslAuthenticateRequest(auth_bytes=first))
        told += [authenticated.error_code, authenticated.error_message]
        if not authenticated.error_code:
            told.append(bytes(authenticated.auth_bytes)[:1])
            authenticated = wire.ask(2, SaslAuthenticateRequest(auth_bytes=b"\x01"))
            told += [authenticated.error_code, authenticated.error_message]
    try:
        told.append(wire.read(1))
    except ConnectionError:
        told.append("closed")
    return tuple(told)


@pytest.mark.parametrize(
    ("mechanism", "first"),
    [
        ("PLAIN", f"\0{USER}\0{WRONG}".encode()),
        ("PLAIN", f"{BOB}\0{USER}\0{PASSWORD}".encode()),
        ("PLAIN", b"nonsense"),
        ("PLAIN", b""),
        ("SCRAM-SHA-256", b"n,,n=nobody,r=nonce"),
        ("SCRAM-SHA-512", b"n,,n=alice,r=nonce"),
        ("SCRAM-SHA-512", b"nonsense"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer nonsense\x01\x01"),
        ("OAUTHBEARER", b"\xff\xff"),
        ("GSSAPI", b"nonsense"),
        ("x" * 300, b""),
    ],
    ids=str,
)
def test_a_refusal_is_the_upstreams(nodes: Nodes, kshim: Passing, mechanism: str, first: bytes) -> None:
    """Code, text and what follows are the same as without kshim."""
    host, _, port = address_of(nodes, "LOGIN").rpartition(":")
    with Wire(host, int(port)) as direct, kshim.wire() as passed:
        assert said(passed, mechanism, first) == said(direct, mechanism, first)


def test_nothing_is_answered_before_the_login(kshim: Passing) -> None:
    for ask in (
        lambda wire: wire.ask(9, MetadataRequest(topics=())),
        lambda wire: wire.ask(4, HeartbeatRequest(group_id="g-x", generation_id=1, member_id="m")),
        lambda wire: said(wire, "SCRAM-SHA-256", b"n,,n=alice,r=nonce") and wire.ask(9, MetadataRequest()),
    ):
        with kshim.wire() as wire, pytest.raises(ConnectionError):
            ask(wire)


def log_in(wire: Wire, user: str = USER, mechanism: str = "PLAIN", version: int = 2) -> Any:
    """Authenticate; return the last answer."""
    assert not wire.ask(1, SaslHandshakeRequest(mechanism=mechanism)).error_code
    if mechanism == "PLAIN":
        return wire.ask(version, SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{PASSWORD}".encode()))
    exchange = Scram(ScramMechanism(mechanism), user, Secret(PASSWORD))
    next_token: bytes | None = exchange.first()
    while next_token is not None:
        answer = wire.ask(version, SaslAuthenticateRequest(auth_bytes=next_token))
        assert not answer.error_code, answer
        next_token = exchange.answer(bytes(answer.auth_bytes))
    return answer


def test_an_old_handshake_is_followed_by_bare_tokens(kshim: Passing) -> None:
    with kshim.wire() as wire:
        assert not wire.ask(0, SaslHandshakeRequest(mechanism="PLAIN")).error_code
        wire.sendall(len(RIGHT).to_bytes(4) + RIGHT)
        assert wire.frame() == b""
        assert wire.ask(9, MetadataRequest(topics=())).brokers


# ---- how long a login counts


def test_a_session_ends_and_is_renewed_at_the_upstream(kshim: Passing) -> None:
    with kshim.wire() as wire, kshim.wire() as silent:
        told = log_in(wire, mechanism="SCRAM-SHA-256")
        log_in(silent, mechanism="SCRAM-SHA-256")
        assert SESSION_MS - 1000 < told.session_lifetime_ms <= SESSION_MS
        until_s = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < until_s:
            assert log_in(wire, mechanism="SCRAM-SHA-256").session_lifetime_ms > 0
            assert wire.ask(9, MetadataRequest(topics=())).brokers
            time.sleep(1.1)  # Kafka refuses another login within a second
        with pytest.raises(ConnectionError):
            silent.ask(4, HeartbeatRequest(group_id="g-x", generation_id=1, member_id="m"))
    with kshim.wire() as wire:
        log_in(wire, mechanism="SCRAM-SHA-256")
        time.sleep(1.1)
        with pytest.raises(AssertionError, match="Cannot change principals"):
            log_in(wire, user=BOB, mechanism="SCRAM-SHA-256")


def test_librdkafka_stays_connected_while_its_sessions_end(kshim: Passing, orders: str) -> None:
    """It authenticates again, on connections on which it also has a group's requests."""
    options = of_librdkafka(kshim, "SCRAM-SHA-256")
    producer = Producer(options | {"message.send.max.retries": 0, "linger.ms": 0})
    consumer = Consumer(options | {"group.id": f"g-{orders}", "auto.offset.reset": "earliest"})
    consumer.subscribe([orders])
    faults: list[KafkaError] = []
    until_s, sent, read = time.monotonic() + 3 * SESSION_MS / 1000, 0, 0
    while time.monotonic() < until_s or read < sent:
        assert time.monotonic() < until_s + ANSWER_S, (read, sent, kshim.server.report())
        if time.monotonic() < until_s:
            producer.produce(orders, b"%d" % sent, partition=sent % NODES, on_delivery=noting(faults))
            sent += 1
        producer.poll(0.05)
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            read += 1
            consumer.commit(message, asynchronous=False)
    assert producer.flush(20) == 0
    consumer.close()
    assert faults == []
    assert "has not authenticated again" not in "\n".join(kshim.server.log)


def noting(faults: list[KafkaError]) -> Callable[..., None]:
    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            faults.append(error)

    return delivered


def of_librdkafka(kshim: Passing, mechanism: str = "SCRAM-SHA-512", user: str = USER) -> dict[str, Any]:
    return {
        "bootstrap.servers": kshim.address("CLEAR"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


# ---- groups, by the upstream's ACLs


def test_groups_are_seen_by_those_who_may(kshim: Passing, orders: str) -> None:
    group = f"g-{orders}"
    consumer = Consumer(of_librdkafka(kshim) | {"group.id": group})
    (committed,) = consumer.commit(offsets=[TopicPartition(orders, 0, 7)], asynchronous=False)
    assert committed.error is None
    consumer.close()
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))

    def seen(user: str) -> tuple[set[str], int, int, list[int]]:
        listed: set[str] = set()
        for node in range(NODES):
            with kshim.wire(node=node) as wire:
                log_in(wire, user)
                listed |= {each.group_id for each in wire.ask(4, ListGroupsRequest()).groups}
                (described,) = wire.ask(5, DescribeGroupsRequest(groups=(group,))).groups
                (fetched,) = wire.ask(9, fetch).groups
        offsets = [each.committed_offset for topic in fetched.topics for each in topic.partitions]
        return {each for each in listed if each == group}, described.error_code, fetched.error_code, offsets

    denied = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert seen(USER) == ({group}, 0, 0, [7])
    assert seen(BOB) == (set(), denied, denied, [])


def test_a_right_that_is_given_counts_soon(nodes: Nodes, kshim: Passing) -> None:
    request = HeartbeatRequest(group_id="later", generation_id=1, member_id="m")
    with kshim.wire() as wire:
        log_in(wire)
        assert wire.ask(4, request).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        allow(nodes.servers[1], (USER, AclResource.GROUP, "later", AclOperation.READ))
        wait_until(lambda: wire.ask(4, request).error_code == ErrorCode.UNKNOWN_MEMBER_ID, 20, "the right")


def test_an_expression_matches_what_a_member_may_describe(nodes: Nodes, kshim: Passing, orders: str) -> None:
    """KIP-848: names of other topics are not told. New topics come by themselves."""
    admin = Admin(nodes.servers[1].bootstrap)
    admin.create_topic(f"secret-{orders}", 1)
    options = {"group.id": f"g-{orders}", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer(of_librdkafka(kshim) | options)
    consumer.subscribe([f"^.*{orders}.*"])

    def topics() -> set[str]:
        consumer.poll(0.1)
        return {each.topic for each in consumer.assignment()}

    wait_until(lambda: topics() == {orders}, ANSWER_S, kshim.server.report)
    admin.create_topic(f"{orders}-more", 1)
    admin.create_topic(f"secret-{orders}-more", 1)
    admin.close()
    wait_until(lambda: topics() == {orders, f"{orders}-more"}, ANSWER_S, kshim.server.report)
    consumer.close()


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


# ---- transactions and quotas


def test_offsets_in_transactions(kshim: Passing, orders: str) -> None:
    """USER's transaction commits an offset; BOB, who may use the transactional id, may not use the group."""
    group = f"g-{orders}"
    consumer = Consumer(of_librdkafka(kshim) | {"group.id": group})
    offsets = [TopicPartition(orders, 0, 5)]

    def transact(user: str) -> None:
        producer = Producer(of_librdkafka(kshim, user=user) | {"transactional.id": f"{orders}-{user}"})
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        if user == USER:
            producer.produce(orders, b"x", partition=1)
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), ANSWER_S)
        producer.commit_transaction(ANSWER_S)

    transact(USER)
    (committed,) = consumer.committed([TopicPartition(orders, 0)], ANSWER_S)
    assert committed.offset == 5
    with pytest.raises(KafkaException) as refused:
        transact(BOB)
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


def test_quotas_of_the_upstream_are_a_users(nodes: Nodes, kshim: Passing, orders: str) -> None:
    entity = (EntityData(entity_type="user", entity_name=USER),)
    first = nodes.servers[1]

    def alter(**op: Any) -> None:
        ops = (OpData(key="producer_byte_rate", **op),)
        with Wire(first.host, first.port) as wire:
            request = AlterClientQuotasRequest(entries=(RequestEntryData(entity=entity, ops=ops),))
            assert not wire.ask(1, request).entries[0].error_code

    throttled: list[float] = []
    told = {"throttle_cb": lambda event: throttled.append(event.throttle_time)}
    producer = Producer(of_librdkafka(kshim) | told)
    alter(value=1000.0)
    try:

        def is_throttled() -> bool:
            producer.produce(orders, b"x" * 5000, partition=0)
            producer.flush(5)
            return bool(throttled)

        wait_until(is_throttled, ANSWER_S, "a quota of the user")
    finally:
        alter(value=0.0, remove=True)


# ---- what is wrong at the start


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT,OPEN:PLAINTEXT"},
            "upstream.sasl.pass.through.enable: expected SASL at every listener, but OPEN has PLAINTEXT",
        ),
        (
            {"upstream.security.protocol": "PLAINTEXT"},
            "upstream.sasl.pass.through.enable: expected upstream.security.protocol to be SASL_PLAINTEXT or "
            "SASL_SSL, too",
        ),
    ],
    ids=["listener", "upstream"],
)
def test_nobody_comes_in_without_a_login(
    options: dict[str, str], line: str, tmp_path: Path, certificates: Path
) -> None:
    listeners = "CLEAR://127.0.0.1:0"
    if "OPEN" in options.get("listener.security.protocol.map", ""):
        listeners += ",OPEN://127.0.0.1:0"
    properties = {
        "listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT",
        "upstream.sasl.pass.through.enable": "true",
        **options,
    }
    told = of_kshim("SASL_PLAINTEXT", certificates)
    done = run_to_end(
        *("serve", "--listen", listeners, "--data-dir", ":memory:"),
        *arguments(tmp_path, "127.0.0.1:1", told, *set_options(properties)),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert [each for each in done.stderr.splitlines() if each.startswith("kshim: ")] == [f"kshim: {line}"]
