"""Links to the upstream's own group coordinators."""

from __future__ import annotations

from kshim.configs.endpoint import Endpoint
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest

ANSWER_S = 5.0


class UpstreamCoordinators:
    """Finds the coordinator of a group, and keeps a link to it."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._links: dict[Endpoint, Link] = {}

    async def link(self, group_id: str) -> Link | ErrorCode:
        """A link to the group's coordinator, or why there is none. Raises LinkError."""
        answer = await self._upstream.ask(FindCoordinatorRequest(key=group_id, coordinator_keys=(group_id,)))
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code != ErrorCode.NONE:
            return ErrorCode(found.error_code)
        address = Endpoint(found.host, found.port)
        link = self._links.get(address)
        if link is None or not link.is_open:
            link = self._links[address] = await self._upstream.connect(address, ANSWER_S)
        return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()
