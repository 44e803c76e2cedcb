"""Counts records by key, and sends each count on with its own name, all in transactions.

The counts are in a changelog, and their copy in RocksDB. The command line:
`BOOTSTRAP GROUP INPUT OUTPUT NAME STATE_DIR`.
"""

from __future__ import annotations

import sys

from quixstreams import Application, State

bootstrap, group, source, sink, name, state_dir = sys.argv[1:]

app = Application(
    broker_address=bootstrap,
    consumer_group=group,
    auto_offset_reset="earliest",
    state_dir=state_dir,
    processing_guarantee="exactly-once",
    commit_interval=0.5,
    consumer_poll_timeout=0.1,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
    loglevel="WARNING",
)


def count(value: str, state: State) -> dict[str, object]:
    total = state.get("count", default=0) + 1
    state.set("count", total)
    return {"count": total, "by": name}


records = app.dataframe(app.topic(source, key_deserializer="str", value_deserializer="str"))
records = records.apply(count, stateful=True)
records.to_topic(app.topic(sink, key_serializer="str", value_serializer="json"))
app.run()
