"""Clients of a broker, and a topic and a group that no other test uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from integration.clients.confluent.python.clients import ANSWER_S, QUIET
from integration.support.awaiting import wait_until
from integration.support.server import Server


def _named_by_librdkafka(config: dict[str, object]) -> dict[str, object]:
    """librdkafka's names, which have dots; callbacks keep theirs."""
    return {key if callable(value) else key.replace("_", "."): value for key, value in config.items()}


# One for all tests: librdkafka 2.6 often takes a second to close a client.
@pytest.fixture(scope="session")
def admin(broker: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


@pytest.fixture
def new_consumer(broker: Server) -> Iterator[Callable[..., Consumer]]:
    """Makes consumers that start at the beginning and commit nothing; `group_id` may name their group."""
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


@pytest.fixture(scope="session")
def new_producer(broker: Server) -> Callable[..., Producer]:
    def new(**config: object) -> Producer:
        settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **QUIET}
        settings.update(_named_by_librdkafka(config))
        return Producer(settings)

    return new


@pytest.fixture(scope="session")
def producer(new_producer: Callable[..., Producer]) -> Producer:
    """For tests that need nothing special of a producer."""
    return new_producer()


@pytest.fixture
def new_topic(admin: AdminClient, topic: str) -> Callable[..., str]:
    """Makes a topic that no other test uses, and waits until all its partitions are listed with leaders."""

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
