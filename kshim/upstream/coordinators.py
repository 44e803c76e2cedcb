"""Links to the upstream's own coordinators, of groups and of transactions, and to its other brokers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kshim.configs.endpoint import Endpoint
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest

ANSWER_S = 5.0
GROUP, TRANSACTION = 0, 1
"""The kinds of keys in FindCoordinator."""


class UpstreamCoordinators:
    """Finds coordinators, and keeps a link to each."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._links: dict[Endpoint, Link] = {}

    async def link(self, key: str, key_type: int = GROUP) -> Link | ErrorCode:
        """A link to the coordinator of a group or a transactional id, or why there is none.

        Raises LinkError.
        """
        found = (await self.find([key], key_type))[key]
        return found if isinstance(found, ErrorCode) else await self.link_to(found)

    async def find(self, keys: Sequence[str], key_type: int = GROUP) -> dict[str, Endpoint | ErrorCode]:
        """Where the coordinator of each key is, or why there is none. Raises LinkError."""
        request = FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=tuple(keys))
        answer = await self._upstream.ask(request)
        if answer.coordinators:
            return {each.key: _place(each) for each in answer.coordinators}
        found = {keys[0]: _place(answer)}  # before v4, of Kafka 3.0, one key is asked for at a time
        for key in keys[1:]:
            found[key] = _place(await self._upstream.ask(replace(request, key=key)))
        return found

    async def link_to(self, address: Endpoint) -> Link:
        """A link to a broker. Raises LinkError."""
        link = self._links.get(address)
        if link is None or not link.is_open:
            link = await self._upstream.connect(address, ANSWER_S)
            made = self._links.get(address)
            if made is not None and made.is_open:  # by somebody else, meanwhile
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
