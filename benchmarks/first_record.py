"""How long a test waits for Kafka: from starting a server to the first record that a group's consumer gets.

    python -m benchmarks.first_record [--rounds 20] [--apache-kafka]

Each round runs in a new process, as a test run does. The first server of a process has to import kshim; the
second is what every further test pays. With --apache-kafka the same is done with Apache Kafka in the same
round, and the ratio of the medians is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from kshim.testing import serving

TOPIC, GROUP = "first", "readers"
TIMEOUT_S = 60
FIRST, SECOND, KAFKA = "first server", "second server", "Apache Kafka"
PHASES = ("started", "produced", "consumed")


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
    assert consumer.poll(TIMEOUT_S).value() == b"value"
    consumer.close()


CLIENTS = {"kafka-python": kafka_python, "confluent-kafka": confluent_kafka}


# ---- one process


@contextmanager
def kshim() -> Iterator[str]:
    with serving() as server:
        yield server.bootstrap


@contextmanager
def apache_kafka() -> Iterator[str]:
    from integration import apache_kafka
    from integration.support.server import Server

    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory) / "data", command=apache_kafka.COMMAND).start()
        yield server.bootstrap
        server.stop()


def seconds(server: Any, client: Callable[[str, Callable[[], None]], None]) -> list[float]:
    """The seconds after which the phases were over; stopping the server does not count."""
    times = [time.perf_counter()]

    def now() -> None:
        times.append(time.perf_counter())

    with server() as bootstrap:
        now()
        client(bootstrap, now)
        now()
    return [at - times[0] for at in times[1:]]


def one_process(client_name: str, server: str) -> dict[str, list[float]]:
    """What one test run measures, after it has imported its client."""
    client = CLIENTS[client_name]
    __import__(client_name.replace("confluent-", "confluent_").replace("kafka-python", "kafka"))
    if server == KAFKA:
        return {KAFKA: seconds(apache_kafka, client)}
    return {FIRST: seconds(kshim, client), SECOND: seconds(kshim, client)}


# ---- all of them


def in_new_process(client: str, server: str) -> dict[str, list[float]]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.first_record", "--one", client, server]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the medians of each client and server, and how they compare with Apache Kafka's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--apache-kafka", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("CLIENT", "SERVER"), help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.one:
        print(json.dumps(one_process(*options.one)))
        return
    measured: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(options.rounds):
        for client in CLIENTS:
            for server in (FIRST, KAFKA) if options.apache_kafka else (FIRST,):
                for name, times in in_new_process(client, server).items():
                    measured.setdefault((client, name), []).append(times)
    for (client, server), rounds in sorted(measured.items()):
        middle = [median(times) for times in zip(*rounds, strict=True)]
        shown = ", ".join(f"{phase} {at:.2f}" for phase, at in zip(PHASES, middle, strict=True))
        ends = [times[-1] for times in rounds]
        line = f"{client:16} {server:14} {shown} s ({min(ends):.2f} to {max(ends):.2f})"
        if server != KAFKA and (peers := measured.get((client, KAFKA))):
            line += f", 1/{median(times[-1] for times in peers) / middle[-1]:.1f} of Kafka's"
        print(line)


if __name__ == "__main__":
    main()
