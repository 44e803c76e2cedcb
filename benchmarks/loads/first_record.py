"""The wait of a test: from starting a server to the first record that a group's consumer gets.

Each round runs in a new process, as a test run does. The first server of a process has to import kshim; the
second is what every further test pays. Apache Kafka has the options of the JVM with which it starts soonest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from uuid import uuid4

from benchmarks.generator import Load, generate
from benchmarks.processor import Measured
from benchmarks.servers import KSHIM, Settings, Side, Target
from kshim.testing import serving

TOPIC, GROUP = "first", "readers"
TIMEOUT_S = 60
PHASES = ("to connect", "to produce", "to consume")


# ---- clients: each produces a record, says so, and consumes it


def kafka_python(bootstrap: str, produced: Callable[[], None]) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(TOPIC, b"value").get(timeout=TIMEOUT_S)
    produced()
    consumer = KafkaConsumer(TOPIC, bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest")
    assert next(consumer).value == b"value"
    consumer.close()
    producer.close()


def confluent_kafka(bootstrap: str, produced: Callable[[], None]) -> None:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(TOPIC, b"value")
    producer.flush(TIMEOUT_S)
    produced()
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.value() == b"value"
    consumer.close()


CLIENTS = {"kafka-python": ("kafka", kafka_python), "confluent-kafka": ("confluent_kafka", confluent_kafka)}


# ---- one process


@contextmanager
def kshim_serving(flush: str) -> Iterator[str]:
    with serving(properties={"flush.policy": flush}) as server:
        yield server.bootstrap


@contextmanager
def side_serving(kind: str, directory: Path) -> Iterator[str]:
    with Side(kind).serving(directory / str(uuid4()), {}, quick_start=True) as server:
        yield server.target.bootstrap


def phases(
    client: Callable[[str, Callable[[], None]], None], server: AbstractContextManager[str]
) -> list[float]:
    """The seconds after which the phases were over; stopping the server does not count."""
    times = [time.perf_counter()]

    def now() -> None:
        times.append(time.perf_counter())

    with server as bootstrap:
        now()
        client(bootstrap, now)
        now()
    return [at - times[0] for at in times[1:]]


def in_process(target: Target, load: Load, _: float) -> Measured:
    """The measurement of one test run, after it has imported its client."""
    module, client = CLIENTS[load["client"]]
    import_module(module)
    if load["kind"] != KSHIM:
        took_s = {"": phases(client, side_serving(load["kind"], Path(target.data_dir)))}
    else:
        servers = {"": kshim_serving(target.flush), ", any other": kshim_serving(target.flush)}
        took_s = {which: phases(client, server) for which, server in servers.items()}
    return Measured(
        {
            f"s {phase}{which}": seconds
            for which, all_seconds in took_s.items()
            for phase, seconds in reversed(list(zip(PHASES, all_seconds, strict=True)))
        }
    )


def first_record(side: Side, directory: Path, _: Settings, load: Load) -> Measured:
    """With one `client`."""
    target = Target("", data_dir=str(directory), flush=side.flush)
    return generate("loads.first_record:in_process", target, {**load, "kind": side.kind}, 0)
