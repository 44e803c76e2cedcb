"""Reads what the copying groups have written, as a reader that sees committed transactions alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from integration.upstream.offsets_seen import OffsetsSeen

MOST = 1_000
WAIT_S = 0.2
END_S = 30.0


class Copies(threading.Thread):
    """Notes each copy in what its group has seen."""

    def __init__(self, bootstrap: str, partitions: int, seen: Mapping[str, OffsetsSeen]) -> None:
        """bootstrap: the upstream's own. seen: by the topic with the copies."""
        super().__init__(daemon=True)
        self._seen = seen
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader of copies, which commits nothing",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic in seen
                for partition in range(partitions)
            ]
        )
        self._is_over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(MOST, WAIT_S):
                if message.error() is None:
                    partition, _, offset = (message.value() or b"").decode().partition("-")
                    self._seen[str(message.topic())].note(int(partition), int(offset))
        self._consumer.close()

    def end(self) -> None:
        self._is_over.set()
        self.join(END_S)
