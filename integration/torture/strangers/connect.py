"""Kafka Connect: a standalone worker whose sink prints each record as a report.

`python -m integration.torture.strangers.connect CLASS_PATH`
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from integration.frameworks.process import FRUGAL
from integration.torture.museum.work import BOOTSTRAP, GROUP, STATE_DIR, TOPIC

PREFIX = "connect-"
"""A sink's group is this and the connector's name."""
CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {
    "bootstrap.servers": BOOTSTRAP,
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "plugin.discovery": "service_load",
    "listeners": "http://127.0.0.1:0",
    "offset.storage.file.filename": str(Path(STATE_DIR, "offsets")),
    "offset.flush.interval.ms": "300",
    "consumer.heartbeat.interval.ms": "200",
    "consumer.auto.offset.reset": "earliest",
    "consumer.reconnect.backoff.max.ms": "300",
}
SINK = {
    "name": GROUP.removeprefix(PREFIX),
    "connector.class": "FileStreamSink",  # without a file it prints
    "tasks.max": "1",
    "topics": TOPIC,
    "transforms": "report",
    "transforms.report.type": "Report",
}


def written(name: str, properties: Mapping[str, str]) -> str:
    path = Path(STATE_DIR, name)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(path)


def main(class_path: str) -> None:
    files = written("worker.properties", WORKER), written("sink.properties", SINK)
    main_class = "org.apache.kafka.connect.cli.ConnectStandalone"
    logged = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    os.execvp("java", ["java", *FRUGAL, logged, "-cp", class_path, main_class, *files])


if __name__ == "__main__":
    main(*sys.argv[1:])
