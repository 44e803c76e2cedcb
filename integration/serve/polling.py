"""A consumer that another thread polls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from integration.support.clients import new_consumer

POLL_MS = 2000
"""Long, because kafka-python 3.0.12 loses its assignment when a poll ends while it joins; but each end waits
for it."""


@contextmanager
def polling(bootstrap: str, topic: str, group: str, **options: Any) -> Iterator[Any]:
    """A consumer that another thread polls, commits with, and closes at the end."""
    consumer = new_consumer(bootstrap, topic, group_id=group, heartbeat_interval_ms=300, **options)
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            if consumer.poll(POLL_MS):
                consumer.commit()
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield consumer
    finally:
        over.set()
        thread.join()
