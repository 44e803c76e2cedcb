"""One client over TLS, as a program: writes records to each partition, reads them in a group, and commits.

    python -m integration.upstream.reader kafka-python BOOTSTRAP TOPIC PARTITIONS CA_FILE

prints one line when all is read and committed, and ends when standard input does: {"read": […], "brokers":
{NODE_ID: "HOST:PORT"}}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

WITHIN_S = 60


def kafka_python(bootstrap: str, topic: str, partitions: int, ca_file: str) -> Any:
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

    options = {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_cafile": ca_file}
    producer = KafkaProducer(**options)
    for number in range(partitions):
        producer.send(topic, b"%d" % number, partition=number).get(timeout=WITHIN_S)
    consumer = KafkaConsumer(
        topic, **options, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False
    )
    read: list[int] = []
    until_s = time.monotonic() + WITHIN_S
    while len(read) < partitions and time.monotonic() < until_s:
        read += [int(each.value) for found in consumer.poll(1000).values() for each in found]
    consumer.commit()
    admin = KafkaAdminClient(**options)
    brokers = admin.describe_cluster()["brokers"]
    # kafka-python 3 asks by another request, with another word for it.
    found = {each.get("broker_id", each.get("node_id")): f"{each['host']}:{each['port']}" for each in brokers}
    return {"read": sorted(read), "brokers": found}, (producer, consumer)


def librdkafka(bootstrap: str, topic: str, partitions: int, ca_file: str) -> Any:
    from confluent_kafka import Consumer, Producer

    options = {"bootstrap.servers": bootstrap, "security.protocol": "SSL", "ssl.ca.location": ca_file}
    producer = Producer(options)
    for number in range(partitions):
        producer.produce(topic, b"%d" % number, partition=number)
    assert producer.flush(WITHIN_S) == 0
    group = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(options | group)
    consumer.subscribe([topic])
    read: list[int] = []
    until_s = time.monotonic() + WITHIN_S
    while len(read) < partitions and time.monotonic() < until_s:
        read += [int(each.value() or b"") for each in consumer.consume(partitions, 1.0) if not each.error()]
    consumer.commit(asynchronous=False)
    brokers = producer.list_topics(timeout=WITHIN_S).brokers.values()
    return {"read": sorted(read), "brokers": {each.id: f"{each.host}:{each.port}" for each in brokers}}, (
        producer,
        consumer,
    )


CLIENTS = {"kafka-python": kafka_python, "librdkafka": librdkafka}


def main() -> None:
    name, bootstrap, topic, partitions, ca_file = sys.argv[1:]
    found, _clients = CLIENTS[name](bootstrap, topic, int(partitions), ca_file)
    print(json.dumps(found), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
