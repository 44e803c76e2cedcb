"""The code under test: reads orders, and commits each one that it has handled."""

from confluent_kafka import Consumer


def handle(settings: dict[str, object], topic: str, count: int) -> list[str]:
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    handled: list[str] = []
    try:
        while len(handled) < count:
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                handled.append(message.value().decode().upper())
                consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()
    return handled
