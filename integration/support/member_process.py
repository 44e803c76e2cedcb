"""The frame of a member process: its options, its signals, and the lines at its start and its end."""

from __future__ import annotations

import faulthandler
import json
import logging
import signal
import sys
import time
from typing import Any, Protocol, TypeVar

from integration.support.events import emit

Producer = TypeVar("Producer")


class Closable(Protocol):
    def close(self) -> object: ...


def begin() -> tuple[dict[str, Any], list[int]]:
    """Return the options of the command line, and a list that has an item as soon as SIGTERM has come.

    SIGUSR1 makes the process print where it stands.
    """
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    options: dict[str, Any] = json.loads(sys.argv[1])
    return options, stopping


def close(member: Closable) -> None:
    began_s = time.monotonic()
    member.close()
    emit("closed", seconds=time.monotonic() - began_s)


class Copying(Protocol[Producer]):
    """A member that copies what it reads, each batch in a transaction of its producer."""

    errors: type[Exception]
    """The errors of its client."""

    def new_producer(self) -> Producer:
        """A producer whose former transactions have ended; go on behind what these have committed."""

    def copy_next(self, producer: Producer) -> None:
        """Copy the next records, if there are some, and print the offsets that were committed."""

    def recover(self, producer: Producer, error: Any) -> Producer | None:
        """Abort what was not committed. Return None if that takes a new producer."""


def copy_until_stopped(copier: Copying[Producer], stopping: list[int]) -> Producer | None:
    """Copy until SIGTERM comes. Return the producer, which may have a transaction under way."""
    producer: Producer | None = None
    while not stopping:
        try:
            producer = producer or copier.new_producer()
            copier.copy_next(producer)
        except copier.errors as error:
            emit("commit_failed", error=f"{type(error).__name__}: {error}")
            if producer is not None and not stopping:
                producer = copier.recover(producer, error)
    return producer
