"""One member as a process: it joins and closes on command, and says when it gains and loses partitions.

Run it as `python -m integration.plan.member JSON`. It reads "join" and "close" from stdin, and prints each
event as a line of JSON with the time in ms since 1970.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

POLL_S = 0.5


def say(what: str, partitions: Any = ()) -> None:
    """Print an event."""
    event = {"at_ms": round(time.time() * 1000), "what": what, "partitions": sorted(partitions)}
    print(json.dumps(event), flush=True)


class Consumer(Protocol):
    """One of both clients."""

    def poll(self) -> object: ...
    def close(self) -> object: ...


def kafka_python(options: dict[str, Any]) -> Callable[[], Consumer]:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            say("loses", [each.partition for each in revoked])

        def on_partitions_assigned(self, assigned: Any) -> None:
            say("gains", [each.partition for each in assigned])

    def join() -> Consumer:
        consumer = KafkaConsumer(
            bootstrap_servers=options["bootstrap"],
            group_id=options["group"],
            group_instance_id=options["instance"],
            client_id="consumer",
            session_timeout_ms=options["session_ms"],
            heartbeat_interval_ms=options["heartbeat_ms"],
            max_poll_interval_ms=300_000,
            enable_auto_commit=False,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        consumer.subscribe([options["topic"]], listener=Listener())

        class Polled:
            def poll(self) -> object:
                return consumer.poll(timeout_ms=round(POLL_S * 1000))

            def close(self) -> object:
                return consumer.close(autocommit=False)

        return Polled()

    return join


def librdkafka(options: dict[str, Any]) -> Callable[[], Consumer]:
    import confluent_kafka

    assignors = {"eager": "range", "cooperative": "cooperative-sticky"}
    settings = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "client.id": "consumer",
        "enable.auto.commit": False,
        "group.protocol": "consumer" if options["protocol"] == "consumer" else "classic",
    }
    if options["instance"]:
        settings["group.instance.id"] = options["instance"]
    if options["protocol"] in assignors:
        settings |= {
            "session.timeout.ms": options["session_ms"],
            "heartbeat.interval.ms": options["heartbeat_ms"],
            "partition.assignment.strategy": assignors[options["protocol"]],
        }

    def join() -> Consumer:
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(
            [options["topic"]],
            on_assign=lambda _, those: say("gains", [each.partition for each in those]),
            on_revoke=lambda _, those: say("loses", [each.partition for each in those]),
            on_lost=lambda _, those: say("loses", [each.partition for each in those]),
        )

        class Polled:
            def poll(self) -> object:
                return consumer.poll(POLL_S)

            def close(self) -> object:
                return consumer.close()

        return Polled()

    return join


CLIENTS = {"kafka-python": kafka_python, "librdkafka": librdkafka}


def main() -> None:
    options = json.loads(sys.argv[1])
    join = CLIENTS[options["client"]](options)
    say("is ready")
    assert sys.stdin.readline() == "join\n"
    say("starts")
    consumer = join()
    closes = threading.Event()
    threading.Thread(target=lambda: closes.set() if sys.stdin.readline() else None, daemon=True).start()
    while not closes.is_set():
        consumer.poll()
    say("ends")
    consumer.close()
    say("is closed")


if __name__ == "__main__":
    main()
