"""Quix Streams sends each record on: `python -m integration.torture.strangers.quix GUARANTEE`."""

from __future__ import annotations

import sys
import time
from typing import Literal

from quixstreams import Application

from integration.torture.museum.work import (
    BOOTSTRAP,
    GROUP,
    INSTANCE,
    OUTPUT,
    SESSION_MS,
    STATE_DIR,
    TOPIC,
    WORK_S,
)

SESSION = {"session.timeout.ms": int(SESSION_MS)} if SESSION_MS else {}


def work(value: bytes) -> bytes:
    time.sleep(WORK_S)
    return value


def main(guarantee: Literal["at-least-once", "exactly-once"]) -> None:
    app = Application(
        broker_address=BOOTSTRAP,
        consumer_group=GROUP,
        auto_offset_reset="earliest",
        processing_guarantee=guarantee,
        commit_interval=0.3,
        consumer_poll_timeout=0.1,
        consumer_extra_config={
            "client.id": INSTANCE,
            "heartbeat.interval.ms": 200,
            "reconnect.backoff.max.ms": 300,
            **SESSION,
        },
        producer_extra_config={"reconnect.backoff.max.ms": 300},
        state_dir=STATE_DIR,
        loglevel="WARNING",
    )
    records = app.dataframe(app.topic(TOPIC, key_deserializer="bytes", value_deserializer="bytes"))
    records.apply(work).to_topic(app.topic(OUTPUT, key_serializer="bytes", value_serializer="bytes"))
    app.run()


if __name__ == "__main__":
    main("exactly-once" if sys.argv[1] == "exactly-once" else "at-least-once")
