"""FastStream reports each record: `python -m integration.torture.strangers.faststream_subscriber POLICY`."""

from __future__ import annotations

import asyncio
import sys

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

from integration.torture.museum.work import BOOTSTRAP, GROUP, SESSION_MS, TOPIC, WORK_S, report


def main(policy: str) -> None:
    broker = KafkaBroker(BOOTSTRAP.split(","))

    @broker.subscriber(
        TOPIC,
        group_id=GROUP,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        session_timeout_ms=int(SESSION_MS or 10_000),
        ack_policy=AckPolicy[policy],
    )
    async def work(message: KafkaMessage) -> None:
        await asyncio.sleep(WORK_S)
        record = message.raw_message
        report(record.topic, record.partition, record.offset)

    asyncio.run(FastStream(broker).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
