"""An ordinary kafka-python producer (acks=all) that reports the acknowledged records and their offsets."""

from queue import SimpleQueue
from threading import Event as Signal
from typing import Any

from kafka import KafkaProducer

from kshim.demo.events import Acknowledged, Failed, now_ms
from kshim.demo.worker import one_line, run, tell

PAUSE_MS = 50
RECORDS_AT_ONCE = 5
"""Records between two pauses of PAUSE_MS: one hundred records per second."""
KEYS = 60
FLUSH_TIMEOUT_S = 20


def produce(arguments: list[str], stop: Signal) -> None:
    """Send until asked to stop, then wait for the last acknowledgements. Arguments: NAME BOOTSTRAP TOPIC."""
    name, bootstrap, topic = arguments
    acknowledged: SimpleQueue[tuple[int, int, str]] = SimpleQueue()
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, client_id=name, acks="all", linger_ms=10, reconnect_backoff_max_ms=500
    )

    def tell_acknowledged() -> None:
        if records := tuple(acknowledged.get() for _ in range(acknowledged.qsize())):
            tell(Acknowledged(name=name, at_ms=now_ms(), records=records))

    def tell_failed(error: BaseException) -> None:
        tell(Failed(name=name, at_ms=now_ms(), error=one_line(error)))

    def send(number: int) -> None:
        value = f"{name} {number}"

        def told(metadata: Any) -> None:
            acknowledged.put((metadata.partition, metadata.offset, value))

        future = producer.send(topic, key=f"key-{number % KEYS}".encode(), value=value.encode())
        future.add_callback(told).add_errback(tell_failed)

    number = 0
    while not stop.wait(PAUSE_MS / 1000):
        for _ in range(RECORDS_AT_ONCE):
            send(number)
            number += 1
        tell_acknowledged()
    producer.flush(timeout=FLUSH_TIMEOUT_S)
    producer.close()
    tell_acknowledged()


if __name__ == "__main__":
    run(produce)
