"""The groups that the upstream serves: share groups, streams groups, and those of the consumer protocol if
kshim passes them on. The offsets of all but share groups are the upstream's, too.

Clients find kshim as the coordinator of every group, as a group's name does not say what kind it is. Requests
of these kinds go on to the upstream's coordinator of their group, as they are, over kshim's own links; or,
if clients authenticate at the upstream, over the client's own connection.

The members of these groups commit and fetch offsets by the same requests as all others. So kshim remembers
the groups for which it has passed a heartbeat, or whose offsets it was about to adopt. Where groups of the
consumer protocol are passed on, kshim also asks the upstream about each group that neither side knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final

from kshim.network.dispatch import LIGHT_ELEMENTS, MAX_ELEMENTS, Reply
from kshim.turns.aside import Aside
from kshim.turns.promise import run, settled
from kshim.upstream import raw
from kshim.upstream.asked import Answer, Asked, Decoded, decode, encode, not_understood, refusal
from kshim.upstream.coordinators import ANSWER_S, by_place
from kshim.upstream.link import LinkError
from kshim.upstream.their_groups import TheirGroups
from kshim.upstream.there import describe_there
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage, TooManyElements
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from schemas.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from schemas.registry import decode_request

HEARTBEATS: Final[dict[int, Callable[..., object]]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatResponse,
    ApiKey.SHARE_GROUP_HEARTBEAT: ShareGroupHeartbeatResponse,
    ApiKey.STREAMS_GROUP_HEARTBEAT: StreamsGroupHeartbeatResponse,
}


class OtherGroups:
    """Passes requests on to the upstream's coordinators."""

    def __init__(
        self,
        upstream: UpstreamGroups,
        theirs: TheirGroups,
        knows: Callable[[str], bool | None],
        aside: Aside,
    ) -> None:
        """knows: returns True for a group that kshim has; None for one that another process coordinates, or
        that is loading. aside: decodes large requests.
        """
        self._upstream = upstream
        self._coordinators = upstream.coordinators
        self._theirs = theirs
        self.knows = knows
        self._aside = aside
        self.pass_on: Callable[[Asked], Answer] | None = None
        """Sends a request on over the client's own connection, if only that may be used: the client has come
        to the port of its group's coordinator.
        """

    def answer(self, asked: Asked) -> Answer:
        """Answer a request about share groups or streams groups."""
        try:
            named = [each.group_id for each in raw.groups(asked.api_key, asked.frame)]
        except raw.Unreadable as error:
            raise refusal(asked, f"cannot be read: {error}") from error
        if asked.api_key == ApiKey.STREAMS_GROUP_HEARTBEAT:
            self._theirs.note(named[0])
        return run(self.passed(asked, named))

    # ---- requests about offsets

    def before(self, way: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        """Return `way`, for requests about offsets, but leave the upstream's groups to the upstream."""

        def answer(asked: Asked) -> Answer:
            if not self._theirs and not self._theirs.has_consumers:
                return way(asked)
            try:
                decoded = asked.decoded or decode_request(asked.frame, LIGHT_ELEMENTS)
            except TooManyElements:
                asked.turn.is_alone = True
                return run(self._answer_many(asked, way))
            except MalformedMessage:
                return way(asked)
            return self._sorted(asked._replace(decoded=decoded), _named(decoded), way)

        return answer

    async def _answer_many(self, asked: Asked, way: Callable[[Asked], Answer]) -> Reply:
        read = partial(decode_request, asked.frame, MAX_ELEMENTS)
        try:
            decoded = await self._aside.run(read, asked.client.address)
        except Exception:  # its answer reports the fault
            return await settled(way(asked))
        return await settled(self._sorted(asked._replace(decoded=decoded), _named(decoded), way))

    def _sorted(self, asked: Asked, group_ids: Collection[str], way: Callable[[Asked], Answer]) -> Answer:
        """Answer when it is known which side has the groups."""
        if self._theirs.has_consumers:
            unknown = [each for each in group_ids if each not in self._theirs and self.knows(each) is False]
            if unknown:
                return run(self._sort(asked, group_ids, unknown, way))
        return self._routed(asked, group_ids, way)

    async def _sort(
        self,
        asked: Asked,
        group_ids: Collection[str],
        unknown: Collection[str],
        way: Callable[[Asked], Answer],
    ) -> Reply:
        """Ask the upstream which of these groups it has as groups of the consumer protocol. Raises Refused if
        it does not answer: kshim must not take the offsets of such a group.
        """
        for there in await describe_there(self._upstream, unknown):
            if there.error and ErrorCode(there.error).retriable:
                name = ErrorCode(there.error).name
                raise refusal(asked, f"names a group of which the upstream does not say what it is: {name}")
            if there.is_consumer and there.exists:
                self._theirs.note(there.group_id)
        return await settled(self._routed(asked, group_ids, way))

    def _routed(self, asked: Asked, group_ids: Collection[str], way: Callable[[Asked], Answer]) -> Answer:
        """Pass on a request about one group of the upstream. `MergedGroups` divides those about several."""
        if len(group_ids) == 1 and self._is_theirs(*group_ids):
            return run(self.passed(asked, group_ids))
        return way(asked)

    def _is_theirs(self, group_id: str) -> bool:
        if group_id not in self._theirs:
            return False
        return not self._theirs.has_consumers or self.knows(group_id) is False

    # ---- passing on

    async def passed(self, asked: Asked, group_ids: Iterable[str]) -> Reply:
        """Ask the coordinators of all groups, and join their answers. Raises Refused."""
        if self.pass_on is not None:
            return await settled(self.pass_on(asked))
        wanted = list(dict.fromkeys(group_ids))
        if not wanted:
            raise refusal(asked, "names no group")
        try:
            placed, errors = by_place((await self._coordinators.find(wanted)).items())
            if errors:
                return self._unplaced(asked, next(iter(errors.values())))
            answers = []
            for address, at_one in placed.items():
                link = await self._coordinators.link_to(address)
                is_all = len(placed) == 1
                frame = asked.frame if is_all else raw.only(asked.api_key, asked.frame, at_one)
                answers.append(await link.ask_frame(frame, timeout_s=ANSWER_S))
        except LinkError as error:
            raise refusal(asked, f"cannot be passed on: {error}") from error
        try:
            return answers[0] if len(answers) == 1 else raw.joined(answers)
        except raw.Unreadable as error:
            raise not_understood(asked, error) from error

    def _unplaced(self, asked: Asked, error: ErrorCode) -> Reply:
        """Answer with the error of the upstream, which has no coordinator; close if it has no place."""
        new = HEARTBEATS.get(asked.api_key)
        if new is None:
            raise refusal(asked, f"finds no coordinator at the upstream: {error.name}")
        header, _ = decode(asked)
        return encode(header, new(error_code=error))


def _named(decoded: Decoded) -> list[str]:
    """Return the groups that a request about offsets names."""
    request: Any = decoded[1]
    return [each.group_id for each in getattr(request, "groups", ()) or (request,)]
