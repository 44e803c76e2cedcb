"""kombu's transport for Kafka: a consumer that sends each message on, then acknowledges it.

`python -m integration.torture.strangers.kombu_worker PREFETCH`
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Producer
from kombu import Connection, Consumer, Queue

from integration.torture.museum.work import BOOTSTRAP, OUTPUT, SESSION_MS, TOPIC, WORK_S, end_at_sigterm, over

SETTINGS = {"bootstrap.servers": BOOTSTRAP, "reconnect.backoff.max.ms": 300}
SESSION = {"session.timeout.ms": int(SESSION_MS)} if SESSION_MS else {}
FLUSH_S = 20


def main(prefetch: str) -> None:
    producer = Producer(SETTINGS)

    def work(body: Any, message: Any) -> None:
        time.sleep(WORK_S)
        producer.produce(OUTPUT, json.dumps(body))
        if producer.flush(FLUSH_S):
            raise RuntimeError(f"not written in {FLUSH_S} s")
        message.ack()

    options = {
        "wait_time_seconds": 0.2,
        "kafka_common_config": SETTINGS,
        "kafka_consumer_config": {"heartbeat.interval.ms": 200, **SESSION},
    }
    host = BOOTSTRAP.split(",")[0]
    with Connection(f"confluentkafka://{host}", transport_options=options) as connection:
        consumer = Consumer(connection.channel(), Queue(TOPIC), callbacks=[work], accept=["json"])
        consumer.qos(prefetch_count=int(prefetch))
        with consumer:
            while not over.is_set():
                try:
                    connection.drain_events(timeout=0.2)
                except TimeoutError:
                    continue


if __name__ == "__main__":
    end_at_sigterm()
    main(*sys.argv[1:])
