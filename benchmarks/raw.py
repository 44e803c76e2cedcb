"""Connections without a client library, for the generators: an error in an answer ends the run."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from integration.support.awaiting import wait_until
from kshim.testing.wire import Wire, api_key_of, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
SOFTWARE = "benchmark"
"""kshim does not know it, and so answers its heartbeats at once."""
READY_TIMEOUT_S = 30
RETRY_S = 0.05
TIMEOUT_S = 60


class Connection(Wire):
    """One connection to one broker."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        super().__init__(host, int(port), timeout_s=TIMEOUT_S)

    def greet(self, software: str = SOFTWARE) -> Connection:
        """Wait for an answer, as clients do. Else connections queue up that the server has not yet accepted,
        and when the queue is full, the next one waits for seconds."""
        hello = ApiVersionsRequest(client_software_name=software, client_software_version="1")
        self.sendall(framed(3, hello))
        self.frame()
        return self

    def response(self, version: int, api_key: ApiKey) -> Any:
        """The next response. Raises RuntimeError where it is an error."""
        response = super().response(version, api_key)
        if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
            raise RuntimeError(f"the broker answered {response}")
        return response

    def ask(self, version: int, request: Any) -> Any:
        """Send a request and return its response; again while the coordinator is not ready."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            self.request(version, request)
            response = super().response(version, api_key_of(request))
            error = getattr(response, "error_code", ErrorCode.NONE)
            if error == ErrorCode.NONE:
                return response
            if error not in NOT_READY or time.monotonic() > deadline:
                raise RuntimeError(f"the broker answered {response}")
            time.sleep(RETRY_S)

    def find_coordinator(self, group_id: str) -> None:
        """Wait for the group's coordinator: a broker creates its group topic at the first request."""
        self.ask(1, FindCoordinatorRequest(key=group_id))

    def new_topic(self, partitions: int, name: str = "") -> str:
        """Create a topic, and wait until all its partitions have leaders; returns its name."""
        name = name or f"benchmark-{uuid4()}"
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        (made,) = self.ask(5, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)).topics
        if made.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise RuntimeError(f"the broker answered {made}")
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)

        def is_led() -> bool:
            (found,) = self.ask(4, asked).topics
            return (
                len([partition for partition in found.partitions if partition.leader_id >= 0]) >= partitions
            )

        wait_until(is_led, READY_TIMEOUT_S, f"the leaders of {name}")
        return name
