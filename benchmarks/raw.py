"""A connection for the benchmarks: an error in an answer ends the run."""

from __future__ import annotations

import time
from typing import Any

from integration.support.wire import API_KEYS, Wire
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest

NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
READY_TIMEOUT_S = 10
TIMEOUT_S = 60


class Connection(Wire):
    """One connection to one broker."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        super().__init__(host, int(port), timeout_s=TIMEOUT_S)

    def response(self, version: int, api_key: ApiKey) -> Any:
        """The next response. Raises RuntimeError where it is an error."""
        response = super().response(version, api_key)
        if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NONE:
            raise RuntimeError(f"the broker answered {response}")
        return response

    def ask(self, version: int, request: Any) -> Any:
        """Send a request and return its response; repeated for ten seconds while the coordinator is not
        ready."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            self.request(version, request)
            response = super().response(version, API_KEYS[type(request)])
            error = getattr(response, "error_code", ErrorCode.NONE)
            if error == ErrorCode.NONE:
                return response
            if error not in NOT_READY or time.monotonic() > deadline:
                raise RuntimeError(f"the broker answered {response}")
            time.sleep(0.05)

    def find_coordinator(self, group_id: str) -> None:
        """Wait for the group's coordinator: a broker creates its group topic at the first request."""
        self.ask(1, FindCoordinatorRequest(key=group_id))
