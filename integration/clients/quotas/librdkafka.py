"""A paced client: confluent-kafka. See the package.

python -m integration.clients.quotas.librdkafka BOOTSTRAP CLIENT_ID TOPIC produce|consume BYTES_PER_S PACED_S
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

RECORD = b"x" * 2000
PRODUCED_S, FETCHED_S = 0.04, 0.1
"""For so long no request and no answer uses up the quota: a larger one would be much of what is measured."""
TICK_S = 0.1


class Told:
    """Counts bytes from the first on, and prints the count."""

    def __init__(self, bytes_per_s: float, paced_s: float) -> None:
        self._bytes_per_s, self._paced_s = bytes_per_s, paced_s
        self._began_s = 0.0
        self.bytes = 0
        threading.Thread(target=self._tell, daemon=True).start()

    def add(self, count: int) -> None:
        self._began_s = self._began_s or time.monotonic()
        self.bytes += count

    def is_ahead(self, done_bytes: int) -> bool:
        """True if the client is ahead of its pace and must wait."""
        if not self._began_s:
            return done_bytes > 0
        elapsed_s = time.monotonic() - self._began_s
        return elapsed_s < self._paced_s and done_bytes > elapsed_s * self._bytes_per_s

    def _tell(self) -> None:
        while True:
            time.sleep(TICK_S)
            if self._began_s:
                print(f"{time.monotonic() - self._began_s:.3f} {self.bytes}", flush=True)


def produce(settings: dict[str, Any], topic: str, told: Told, bytes_per_s: float) -> None:
    producer = Producer(
        {
            **settings,
            "linger.ms": 20,
            "batch.size": int(PRODUCED_S * bytes_per_s),
            "queue.buffering.max.kbytes": 4096,
            "message.timeout.ms": 300_000,
        }
    )
    sent = 0

    def acknowledged(error: object, message: object) -> None:
        if error is None:
            told.add(len(RECORD))

    while True:
        if told.is_ahead(sent):
            producer.poll(0.01)
            continue
        try:
            producer.produce(topic, RECORD, on_delivery=acknowledged)
            sent += len(RECORD)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)


def consume(settings: dict[str, Any], topic: str, told: Told, bytes_per_s: float) -> None:
    own = {"group.id": "none", "enable.auto.commit": False, "queued.max.messages.kbytes": 256}
    limits = "fetch.max.bytes", "max.partition.fetch.bytes", "message.max.bytes"
    own |= dict.fromkeys(limits, int(FETCHED_S * bytes_per_s))
    consumer = Consumer({**settings, **own})
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        if told.is_ahead(told.bytes):
            time.sleep(0.01)
            continue
        for message in consumer.consume(50, 0.1):
            if message.error() is None:
                told.add(len(message.value()))


def main(bootstrap: str, client_id: str, topic: str, what: str, bytes_per_s: str, paced_s: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "client.id": client_id}
    told = Told(float(bytes_per_s), float(paced_s))
    {"produce": produce, "consume": consume}[what](settings, topic, told, float(bytes_per_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
