"""Both brokers: one server of each, shared by all tests, which keep to topics and groups of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from integration import apache_kafka, server
from integration.awaiting import wait_until
from integration.confluent.clients import ANSWER_S, QUIET
from integration.differential import pairs
from integration.server import Server

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
OPTIONS = (
    *("--set", "group.initial.rebalance.delay.ms=0"),
    *("--set", "group.min.session.timeout.ms=300"),
)
PATIENT = ("--set", "broker.session.timeout.ms=30000")
"""Nobody kills it here, and a slow machine must not take it for dead."""


def _named_by_librdkafka(config: dict[str, object]) -> dict[str, object]:
    """With dots, but for what is a callback."""
    return {key if callable(value) else key.replace("_", "."): value for key, value in config.items()}


@pytest.fixture(scope="session", params=[KSHIM, APACHE_KAFKA])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == APACHE_KAFKA:
        request.getfixturevalue("class_path")
        command, options = apache_kafka.COMMAND, (*OPTIONS, *PATIENT)
    else:
        command, options = server.COMMAND, OPTIONS
    started = Server(tmp_path_factory.mktemp(request.param) / "data", options, command=command).start()
    asyncio.run(asyncio.wait_for(pairs.wait_loaded(started), pairs.READY_TIMEOUT_S))
    yield started
    assert started.running, started.report()
    assert started.stop() in (0, 143), started.report()  # 143: a JVM's own


@pytest.fixture
def is_kshim(request: pytest.FixtureRequest) -> bool:
    """For an answer of kshim that is meant to differ: the test names the line of docs/differences.md."""
    return bool(request.node.callspec.params["broker"] == KSHIM)


@pytest.fixture
def admin(broker: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


@pytest.fixture
def new_consumer(broker: Server) -> Iterator[Callable[..., Consumer]]:
    """Makes consumers, of the group `group_id` if it is given, that begin at the start and commit nothing."""
    made: list[Consumer] = []

    def new(group_id: str = "none", /, **config: object) -> Consumer:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
        settings.update(_named_by_librdkafka(config))
        made.append(Consumer(settings))
        return made[-1]

    yield new
    for consumer in made:
        with suppress(RuntimeError):  # the test has closed it
            consumer.close()


@pytest.fixture
def new_producer(broker: Server) -> Callable[..., Producer]:
    def new(**config: object) -> Producer:
        settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **QUIET}
        settings.update(_named_by_librdkafka(config))
        return Producer(settings)

    return new


@pytest.fixture
def producer(new_producer: Callable[..., Producer]) -> Producer:
    return new_producer()


@pytest.fixture
def new_topic(admin: AdminClient, topic: str) -> Callable[..., str]:
    """Makes a topic that no other test uses, and waits until it is listed with all its leaders."""

    def new(partitions: int = 1, *, suffix: str = "", **config: str) -> str:
        name = topic + suffix
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made: dict[str, Future[None]] = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
        made[name].result(ANSWER_S)

        def complete() -> bool:
            listed = admin.list_topics(name, timeout=ANSWER_S).topics[name].partitions.values()
            return len(listed) == partitions and all(partition.leader == 1 for partition in listed)

        wait_until(complete, ANSWER_S, f"{partitions} leaders of {name}")
        return name

    return new


@pytest.fixture
def group_id(topic: str) -> str:
    return f"group-of-{topic}"
