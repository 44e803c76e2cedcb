"""Links to the upstream's own group coordinators, and to its other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kshim.configs.endpoint import Endpoint
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest

ANSWER_S = 5.0


class UpstreamCoordinators:
    """Finds the coordinators of groups, and keeps a link to each."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._links: dict[Endpoint, Link] = {}

    async def link(self, group_id: str) -> Link | ErrorCode:
        """A link to the group's coordinator, or why there is none. Raises LinkError."""
        found = (await self.find([group_id]))[group_id]
        return found if isinstance(found, ErrorCode) else await self.link_to(found)

    async def find(self, group_ids: Sequence[str]) -> dict[str, Endpoint | ErrorCode]:
        """Where each group's coordinator is, or why there is none. Raises LinkError."""
        request = FindCoordinatorRequest(key=group_ids[0], coordinator_keys=tuple(group_ids))
        answer = await self._upstream.ask(request)
        if answer.coordinators:
            return {each.key: _place(each) for each in answer.coordinators}
        found = {group_ids[0]: _place(answer)}  # before v4, of Kafka 3.0, one group is asked for at a time
        for group_id in group_ids[1:]:
            found[group_id] = _place(await self._upstream.ask(FindCoordinatorRequest(key=group_id)))
        return found

    async def link_to(self, address: Endpoint) -> Link:
        """A link to a broker. Raises LinkError."""
        link = self._links.get(address)
        if link is None or not link.is_open:
            link = self._links[address] = await self._upstream.connect(address, ANSWER_S)
        return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()


def by_place(
    found: Iterable[tuple[str, Endpoint | ErrorCode]],
) -> tuple[dict[Endpoint, list[str]], dict[str, ErrorCode]]:
    """Groups by where their coordinators are, and the errors of those that have none."""
    placed: dict[Endpoint, list[str]] = {}
    errors: dict[str, ErrorCode] = {}
    for group_id, where in found:
        if isinstance(where, ErrorCode):
            errors[group_id] = where
        else:
            placed.setdefault(where, []).append(group_id)
    return placed, errors


def _place(found: Any) -> Endpoint | ErrorCode:
    if found.error_code != ErrorCode.NONE:
        return ErrorCode(found.error_code)
    return Endpoint(found.host, found.port)
