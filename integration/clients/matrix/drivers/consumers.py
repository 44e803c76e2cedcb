"""The calls to consumers that the drivers of Python's clients share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from integration.clients.matrix.drivers.lines import Cannot, Polling, text


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of `open`."""

    topics: list[str] = field(default_factory=list)
    pattern: str | None = None
    partitions: list[list[Any]] | None = None
    group: str | None = None
    protocol: str = "classic"
    reset: str = "earliest"
    assignors: list[str] = field(default_factory=lambda: ["range"])
    instance: str | None = None
    auto_commit: bool = False
    commit_on_revoke: bool = False
    session_timeout_ms: int = 10_000
    max_poll_interval_ms: int = 300_000
    isolation: str = "read_uncommitted"
    request_timeout_ms: int | None = None

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.session_timeout_ms // 4

    def need(self, known_assignors: Collection[str]) -> None:
        """Raises Cannot for an assignor that the client does not have."""
        unknown = set(self.assignors) - set(known_assignors)
        if unknown:
            raise Cannot(f"no assignor {', '.join(sorted(unknown))}")


def pairs(partitions: Any) -> list[list[Any]]:
    return sorted([partition.topic, partition.partition] for partition in partitions)


class Consumers:
    """The consumers of one driver, by name. A client that takes the calls otherwise overrides some."""

    partition_type: ClassVar[Callable[[str, int], Any]]
    """The client's TopicPartition."""

    def __init__(self) -> None:
        self._consumers: dict[str, Polling] = {}

    def _call(self, name: str, function: Callable[[Any], Any]) -> Any:
        """`function(consumer)`, between two polls."""
        return self._consumers[name].call(function)

    def _partitions(self, found: list[list[Any]]) -> list[Any]:
        return [type(self).partition_type(topic, number) for topic, number in found]

    def take(self, name: str, count: int, timeout_ms: int) -> list[dict[str, Any]]:
        return self._consumers[name].take(count, timeout_ms)

    def events(self, name: str) -> list[list[Any]]:
        return self._consumers[name].events()

    def assignment(self, name: str) -> list[list[Any]]:
        return pairs(self._call(name, lambda consumer: consumer.assignment()))

    def stall(self, name: str, ms: int) -> None:
        self._consumers[name].stall(ms)

    def close(self, name: str) -> None:
        self._consumers.pop(name).close(lambda consumer: consumer.close())


class LikeKafkaPython(Consumers):
    """The calls as kafka-python has them, which others have taken over."""

    def position(self, name: str, topic: str, partition: int) -> int:
        (where,) = self._partitions([[topic, partition]])
        return int(self._call(name, lambda consumer: consumer.position(where)))

    def seek(self, name: str, topic: str, partition: int, offset: int | str) -> None:
        (where,) = self._partitions([[topic, partition]])
        seek = {
            "beginning": lambda consumer: consumer.seek_to_beginning(where),
            "end": lambda consumer: consumer.seek_to_end(where),
        }.get(str(offset), lambda consumer: consumer.seek(where, offset))
        self._call(name, seek)

    def pause(self, name: str, partitions: list[list[Any]]) -> None:
        self._call(name, lambda consumer: consumer.pause(*self._partitions(partitions)))

    def resume(self, name: str, partitions: list[list[Any]]) -> None:
        self._call(name, lambda consumer: consumer.resume(*self._partitions(partitions)))


def records_of(polled: dict[Any, list[Any]]) -> list[dict[str, Any]]:
    """The records that one poll of such a client gave."""
    return [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "key": text(record.key),
            "value": text(record.value),
            "headers": [[name, text(value)] for name, value in record.headers],
            "timestamp": record.timestamp,
        }
        for records in polled.values()
        for record in records
    ]
