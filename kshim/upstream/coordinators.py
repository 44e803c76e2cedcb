"""Links to the upstream's group coordinators, transaction coordinators and other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kshim.configs.endpoint import Endpoint
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

ANSWER_S = 5.0
GROUP, TRANSACTION = 0, 1
"""The kinds of keys in FindCoordinator."""


class UpstreamCoordinators:
    """Finds coordinators, and keeps a link to each."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._links: dict[Endpoint, Link] = {}

    async def link(self, key: str, key_type: int = GROUP) -> Link | ErrorCode:
        """Return a link to the coordinator of a group or a transactional id, or the error if it has none.

        Raises LinkError.
        """
        found = (await self.find([key], key_type))[key]
        return found if isinstance(found, ErrorCode) else await self.link_to(found)

    async def find(self, keys: Sequence[str], key_type: int = GROUP) -> dict[str, Endpoint | ErrorCode]:
        """Return the address of each key's coordinator, or the error if it has none. Raises LinkError."""
        request = FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=tuple(keys))
        answer = await self._upstream.ask(request)
        if answer.coordinators:
            return {each.key: _place(each) for each in answer.coordinators}
        found = {keys[0]: _place(answer)}  # before v4 (Kafka 3.0), a request has one key
        for key in keys[1:]:
            found[key] = _place(await self._upstream.ask(replace(request, key=key)))
        return found

    async def link_to(self, address: Endpoint) -> Link:
        """Return the open link to a broker; connect if there is none. Raises LinkError."""
        link = self._links.get(address)
        if link is None or not link.is_open:
            link = await self._upstream.connect(address, ANSWER_S)
            made = self._links.get(address)
            if made is not None and made.is_open:  # another call has connected meanwhile
                link.close()
                return made
            self._links[address] = link
        return link

    def close(self) -> None:
        for link in self._links.values():
            link.close()


def by_place(
    found: Iterable[tuple[str, Endpoint | ErrorCode]],
) -> tuple[dict[Endpoint, list[str]], dict[str, ErrorCode]]:
    """Divide groups by their coordinators' addresses; also return the errors of groups that have none."""
    placed: dict[Endpoint, list[str]] = {}
    errors: dict[str, ErrorCode] = {}
    for group_id, where in found:
        if isinstance(where, ErrorCode):
            errors[group_id] = where
        else:
            placed.setdefault(where, []).append(group_id)
    return placed, errors


def _place(found: FindCoordinatorResponse | Coordinator) -> Endpoint | ErrorCode:
    if found.error_code != ErrorCode.NONE:
        return ErrorCode(found.error_code)
    return Endpoint(found.host, found.port)
