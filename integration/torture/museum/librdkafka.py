"""What all programs with confluent-kafka share: settings for quick rebalances, a poll, a commit, a writer."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from integration.torture.museum.work import BOOTSTRAP, GROUP, INSTANCE, OUTPUT, TOPIC, over, work

AT_ONCE = 40
SETTINGS: dict[str, Any] = {
    "bootstrap.servers": BOOTSTRAP,
    "group.id": GROUP,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "heartbeat.interval.ms": 200,
    "reconnect.backoff.max.ms": 300,
}
WRITES: dict[str, Any] = {"bootstrap.servers": BOOTSTRAP, "linger.ms": 5, "reconnect.backoff.max.ms": 300}
FLUSH_S = 20
COMMITTED_S = 2


class Reader(Consumer):
    """A consumer that gathers records for `polled`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.gathered: list[Any] = []

    def drop(self, *_: object) -> None:
        """Forget the gathered records. A poll() may revoke the partitions of those before it, and after that
        their next owner reads them again.
        """
        self.gathered.clear()

    def begin(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin assigned partitions at the group's offset, or at 0.

        When a partition is revoked while librdkafka 2.16 asks a broker for its first offset, librdkafka
        fetches it nevertheless, and gives the program these old records when the partition comes back. This
        needs no kshim: `integration.torture.old_records` shows it with any broker.
        """
        while not over.is_set():
            with contextlib.suppress(KafkaException):  # such as NOT_COORDINATOR: ask again
                found = self.committed(partitions, timeout=COMMITTED_S)
                if not any(each.error for each in found):
                    self.assign(
                        [TopicPartition(TOPIC, each.partition, max(0, each.offset)) for each in found]
                    )
                    return


def subscribed(**settings: Any) -> Reader:
    """A consumer of the topic. In the settings' names "_" stands for "."."""
    reader = Reader({**SETTINGS, **_dotted(settings)})
    reader.subscribe([TOPIC], on_revoke=reader.drop)
    return reader


def subscribed_at_offsets(**settings: Any) -> Reader:
    """Like `subscribed`, for programs that process nothing twice: the program says where partitions begin."""
    reader = subscribed(**settings)
    reader.subscribe([TOPIC], on_assign=reader.begin, on_revoke=reader.drop)
    return reader


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name if name == "on_commit" else name.replace("_", "."): value for name, value in settings.items()
    }


def polled(reader: Reader, most: int = AT_ONCE) -> list[Any]:
    """Some records. Errors of the client are events that it gets over by itself, unless they are fatal."""
    wait_s = 0.2
    while len(reader.gathered) < most and (message := reader.poll(wait_s)) is not None:
        error = message.error()
        if error is None:
            reader.gathered.append(message)
            wait_s = 0.0
        elif error.fatal() or error.code() == KafkaError._FATAL:
            raise KafkaException(error)  # such as a static member that is fenced: it gets no more records
    found, reader.gathered = reader.gathered, []
    return found


def behind(messages: Iterable[Any]) -> list[TopicPartition]:
    """The offsets to commit for these records."""
    last = {message.partition(): message.offset() + 1 for message in messages}
    return [TopicPartition(TOPIC, partition, offset) for partition, offset in last.items()]


def commit(reader: Consumer, messages: Iterable[Any]) -> bool:
    """Commit behind these records. A commit that fails is not repeated: the records come again."""
    return commit_offsets(reader, behind(messages))


def commit_offsets(reader: Consumer, offsets: list[TopicPartition]) -> bool:
    """Commit, and return True if that has succeeded."""
    try:
        if offsets:
            reader.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        print("commit failed:", error, file=sys.stderr)
        if error.args[0].fatal() or error.args[0].code() == KafkaError.FENCED_INSTANCE_ID:
            raise  # this consumer will never get anything again: the supervisor starts a new one
        return False
    return True


def process(message: Any) -> None:
    """Do the work of one record, and report it."""
    work(message.topic(), message.partition(), message.offset())


class Writer:
    """Writes a result for each record."""

    def __init__(self, **settings: Any) -> None:
        self.producer = Producer({**WRITES, **_dotted(settings)})

    def write(self, messages: Iterable[Any]) -> None:
        """Write, and wait until all is acknowledged."""
        self.send(messages)
        if self.producer.flush(FLUSH_S):
            raise RuntimeError(f"not written in {FLUSH_S} s")

    def send(self, messages: Iterable[Any]) -> None:
        """Write, and do not wait."""
        for message in messages:
            headers = [*(message.headers() or []), ("kshim-instance", INSTANCE.encode())]
            self.producer.produce(OUTPUT, message.value(), message.key(), headers=headers)
