"""Groups' coordinators, as clients find them: at the ports of this process, and at other kshim processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kshim.callers import RequestContext
from kshim.configs.endpoint import Endpoint
from kshim.coordination.groups.refusals import DescribeGroup
from kshim.network.dispatch import Reply
from kshim.turns.promise import run
from kshim.turns.slices import Slices, in_slices
from kshim.upstream.asked import Answer, Asked, decode, encode
from kshim.upstream.fellows import Fellow, port_id
from kshim.upstream.here import HERE, Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.rewriting import Place
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.upstream_groups import UpstreamGroups

MayDescribe = Callable[[Asked, Sequence[str]], Awaitable[Collection[str]]]
NOBODY_ELSE: Mapping[str, Coordinator] = {}
GROUP = 0
"""The kind of a key in FindCoordinator."""
FIRST_FIND_WITH_KEYS = 4
KEY_US = 10
LISTED_US = 10


class CoordinatorPorts:
    """Answers FindCoordinator about groups, and ListGroups."""

    def __init__(
        self,
        here: Here,
        brokers: Brokers,
        shards: GroupShards,
        upstream_groups: UpstreamGroups,
        may_describe: MayDescribe | None = None,
    ) -> None:
        """may_describe: returns the groups that a client may see in a list; None if it may see all."""
        self._may_describe = may_describe
        self._here = here
        self._brokers = brokers
        self._shards = shards
        self._upstream_groups = upstream_groups

    def find(
        self,
        asked: Asked,
        header: RequestHeader,
        request: FindCoordinatorRequest,
        theirs: Mapping[str, Coordinator] = NOBODY_ELSE,
    ) -> Answer:
        """Find groups' coordinators: another kshim process, or this one at the port of a running broker.

        theirs: what the upstream has answered the client, by group. Its refusals stay; else the port is that
        of the upstream's coordinator, so that the client reaches it, too, on its own connection.
        """
        client = asked.client
        place = self._brokers.place(asked.broker.node_id, client.advertised, client.listener_name)
        keys = request.coordinator_keys if header.api_version >= FIRST_FIND_WITH_KEYS else (request.key,)
        find = partial(self._coordinator, place, client.listener_name, theirs)
        found = in_slices(self._here.rounds, asked.turn, keys, find, lambda key: KEY_US + len(key) // 8)
        return run(_encode_found(header, found))

    def _coordinator(
        self, place: Place, listener_name: str, theirs: Mapping[str, Coordinator], group_id: str
    ) -> Coordinator:
        there = theirs.get(group_id)
        if there is not None and there.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return there
        shard = self._here.groups.shard_for(group_id)
        at = there.node_id if there is not None and there.node_id in self._brokers.running else None
        leader = self._shards.leader(shard)
        if leader is None:
            node_id, found = self._at(shard, at, place)
        else:
            node_id, found = _at_fellow(leader, at, listener_name)
        if found is None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            why = "The coordinator is not available."
            return Coordinator(key=group_id, node_id=-1, port=-1, error_code=error, error_message=why)
        return Coordinator(key=group_id, node_id=node_id, host=found.host, port=found.port, error_message="")

    def _at(self, shard: int, at: int | None, place: Place) -> tuple[int, Endpoint | None]:
        """Return where clients find a group's coordinator if this process is alone. at: a broker whose port
        it should be.
        """
        node_id = self._brokers.home(shard) if at is None else at
        return node_id, self._brokers.reach(node_id, place)

    def list(self, asked: Asked) -> Answer:
        """List the groups of one port; tools ask all ports, and join the answers.

        A port lists the groups whose coordinator clients find at it, and the groups of its upstream broker
        that kshim does not know. If several kshim processes run, each lists all its groups at the port of its
        anchor: those that it coordinates, and those of the upstream that it would coordinate.
        """
        decoded = asked.decoded or decode(asked)
        return run(self._list(asked, *decoded))

    async def _list(self, asked: Asked, header: RequestHeader, request: ListGroupsRequest) -> Reply:
        here, at = asked.broker.node_id, self._brokers
        nodes: Sequence[int] = (here,)
        if self._shards.fellows():
            nodes = at.running if here == at.anchor else ()
        theirs = await self._upstream_groups.list([at.address(each) for each in nodes], request)
        context, groups = _context(asked, header), self._here.groups
        ours = groups.list_groups(context, request)
        if error := ours.error_code or theirs.error_code:
            return encode(header, ListGroupsResponse(error_code=error))
        found = [group for group in ours.groups if self._is_at(group.group_id, here)]
        slices = Slices(self._here.rounds, asked.turn)
        for group in theirs.groups:
            await slices.spend(LISTED_US)
            if self._is_theirs(context, group.group_id):
                found.append(group)
        if self._may_describe is not None:
            allowed = await self._may_describe(asked, [group.group_id for group in found])
            found = [group for group in found if group.group_id in allowed]
        return encode(header, ListGroupsResponse(groups=tuple(found)))

    def _is_theirs(self, context: RequestContext, group_id: str) -> bool:
        """True if kshim does not know a group of the upstream, and this process would coordinate it."""
        groups = self._here.groups
        return (
            group_id != self._shards.group_id
            and groups.see(group_id) is None
            and groups.refusal(context, DescribeGroup(group_id)) is ErrorCode.NONE
        )

    def _is_at(self, group_id: str, node_id: int) -> bool:
        """True if clients find the coordinator of one of our groups at the port of this broker."""
        if self._shards.fellows():
            return node_id == self._brokers.anchor
        return self._brokers.home(self._here.groups.shard_for(group_id)) == node_id


def by_key(request: FindCoordinatorRequest, response: FindCoordinatorResponse) -> Mapping[str, Coordinator]:
    """Return the coordinators in an answer of the upstream, by group. Up to v3 the answer itself is one."""
    if response.coordinators:
        return {each.key: each for each in response.coordinators}
    one = Coordinator(
        key=request.key,
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
    return {request.key: one}


def _at_fellow(leader: Fellow, at: int | None, listener_name: str) -> tuple[int, Endpoint | None]:
    """Return where clients find a group's coordinator at one of several processes: by the address of the
    process, or at its port for the broker `at`, which has a node id of its own.
    """
    address = leader.addresses.get(listener_name)
    port = None if at is None else leader.at(listener_name, at)
    if at is None or port is None or port == address:
        return leader.node_id, address
    return port_id(leader, at), port


def _context(asked: Asked, header: RequestHeader) -> RequestContext:
    client = asked.client
    return RequestContext(
        header.api_version,
        header.client_id or "",
        client.host,
        client.advertised,
        turn=asked.turn,
        node_id=HERE,
        client=client,
    )


async def _encode_found(header: RequestHeader, found: Awaitable[list[Coordinator]]) -> Reply:
    """Encode the answer. Up to v3 there is one key, and its coordinator is the answer itself."""
    if header.api_version >= FIRST_FIND_WITH_KEYS:
        return encode(header, FindCoordinatorResponse(coordinators=tuple(await found)))
    (one,) = await found
    message = one.error_message if one.error_code else "NONE"
    response = FindCoordinatorResponse(
        error_code=one.error_code, error_message=message, node_id=one.node_id, host=one.host, port=one.port
    )
    return encode(header, response)
