"""A worker of a Connect cluster, and its REST API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration.frameworks.process import Program
from integration.support.awaiting import wait_until
from integration.support.ports import Slot

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
PATIENCE_S = 90
REST_TIMEOUT_S = 10
CONFLICT = 409
SETTINGS = {
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "plugin.discovery": "service_load",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "300",
    # A killed worker is missed within seconds, and its tasks go to others at once.
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "500",
    "task.shutdown.graceful.timeout.ms": "2000",
    "reconnect.backoff.max.ms": "200",
    "consumer.session.timeout.ms": "4000",
    "consumer.heartbeat.interval.ms": "500",
    "consumer.isolation.level": "read_committed",
}


class Refused(Exception):
    """The REST API answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Worker(Program):
    """A worker that is started, but may not answer yet."""

    def __init__(self, class_path: str, slot: Slot, config: Mapping[str, str], directory: Path) -> None:
        self.address = f"127.0.0.1:{slot.port}"
        """As the status of a task names the worker, too."""
        directory.mkdir(exist_ok=True)
        properties = directory / "worker.properties"
        all_config = {**SETTINGS, "listeners": f"http://{self.address}", **config}
        properties.write_text("".join(f"{key}={value}\n" for key, value in all_config.items()))
        super().__init__(class_path, MAIN, [str(properties)], directory)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One call of the REST API. Raises Refused, or OSError while the worker does not answer."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REST_TIMEOUT_S) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode()) from None
        return json.loads(text) if text else None

    def call(self, method: str, path: str, body: object = None) -> Any:
        """A call that is made as soon as the cluster can answer it: not while it rebalances."""

        def answered() -> list[Any]:
            try:
                return [self.ask(method, path, body)]
            except Refused as error:
                if error.status != CONFLICT:
                    raise
                return []

        return wait_until(answered, PATIENCE_S, self.report)[0]

    def wait_ready(self) -> None:
        """Wait until it is a member of the cluster."""

        def ready() -> bool:
            assert self.running, self.report()
            try:
                return bool(self.ask("GET", "/health")["status"] == "healthy")
            except (Refused, OSError):
                return False

        wait_until(ready, PATIENCE_S, self.report)
