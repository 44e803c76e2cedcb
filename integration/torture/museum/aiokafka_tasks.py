"""Programs with aiokafka: `python -m integration.torture.museum.aiokafka_tasks NAME`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from integration.torture.museum.work import BOOTSTRAP, GROUP, TOPIC, WORK_S, end_at_sigterm, over, report


def consumer(**settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        retry_backoff_ms=50,
        max_poll_records=40,
        **settings,
    )


async def polled(reader: AIOKafkaConsumer) -> dict[Any, list[Any]]:
    """Some records. After an error of the client the program goes on."""
    try:
        found: dict[Any, list[Any]] = await reader.getmany(timeout_ms=200)
    except KafkaError as error:
        print("poll failed:", type(error).__name__, file=sys.stderr)
        return {}
    return found


async def process(record: Any) -> None:
    await asyncio.sleep(WORK_S)
    report(record.topic, record.partition, record.offset)


async def awaited() -> None:
    """Process, then commit."""
    reader = consumer(enable_auto_commit=False)
    await reader.start()
    while not over.is_set():
        for partition, records in (await polled(reader)).items():
            for record in records:
                await process(record)
            try:
                await reader.commit({partition: records[-1].offset + 1})
            except KafkaError as error:
                print("commit failed:", type(error).__name__, file=sys.stderr)
    await reader.stop()


async def tasks_and_auto_commit() -> None:
    """A task for all records; the client commits what was polled, not what is processed."""
    reader = consumer(enable_auto_commit=True, auto_commit_interval_ms=200)
    records: asyncio.Queue[Any] = asyncio.Queue()

    async def work() -> None:
        while True:
            await process(await records.get())

    working = asyncio.create_task(work())
    await reader.start()
    while not over.is_set():
        for found in (await polled(reader)).values():
            for record in found:
                records.put_nowait(record)
    working.cancel()
    await reader.stop()


PROGRAMS: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "awaited": awaited,
    "tasks-and-auto-commit": tasks_and_auto_commit,
}

if __name__ == "__main__":
    end_at_sigterm()
    asyncio.run(PROGRAMS[sys.argv[1]]())
