"""Faust: an agent that reports each record, or sends it on.

`python -m integration.torture.strangers.faust_agent GUARANTEE`
"""

from __future__ import annotations

import asyncio
import sys

import faust

from integration.torture.museum.work import (
    BOOTSTRAP,
    GROUP,
    OUTPUT,
    SESSION_MS,
    STATE_DIR,
    TOPIC,
    WORK_S,
    report,
)

EXACTLY_ONCE = "exactly_once"


def application(guarantee: str) -> faust.App:
    return faust.App(
        GROUP,
        broker=[f"kafka://{address}" for address in BOOTSTRAP.split(",")],
        processing_guarantee=guarantee,
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=0.3,
        broker_heartbeat_interval=0.2,
        broker_session_timeout=float(SESSION_MS or 60_000) / 1000,
        datadir=STATE_DIR,
        topic_disable_leader=True,
        web_enabled=False,
        worker_redirect_stdouts=False,
    )


def main(guarantee: str) -> None:
    app = application(guarantee)
    source = app.topic(TOPIC, key_serializer="raw", value_serializer="raw")
    sink = app.topic(OUTPUT, key_serializer="raw", value_serializer="raw")

    @app.agent(source)
    async def work(records: faust.Stream) -> None:
        async for event in records.events():
            await asyncio.sleep(WORK_S)
            message = event.message
            if guarantee == EXACTLY_ONCE:
                await sink.send(key=message.key, value=message.value)
            else:
                report(message.topic, message.partition, message.offset)

    app.Worker(loglevel="warning").execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
