"""Requests of clients that authenticate at the upstream, which kshim would otherwise answer or send itself.

Each goes on over the client's own connection, as it is, so that the upstream judges it. Then kshim adds its
part to the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kshim.network.dispatch import Reply
from kshim.turns.promise import Promise, run
from kshim.upstream.announced import check_version
from kshim.upstream.asked import Answer, Asked, decode, encode, not_understood, refusal
from kshim.upstream.coordinator_ports import GROUP, CoordinatorPorts, by_key
from kshim.upstream.coordinators import ANSWER_S, TRANSACTION, UpstreamCoordinators
from kshim.upstream.here import Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.link import LinkError
from kshim.upstream.transactions import ADD_PARTITIONS, as_offsets, as_partition
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from schemas.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.registry import decode_response

if TYPE_CHECKING:
    from kshim.upstream.their_groups import TheirGroups


class ShardAdding:
    """Adds groups' shards to transactions, under kshim's name."""

    def __init__(self, here: Here, coordinators: UpstreamCoordinators, shards: GroupShards) -> None:
        self._here = here
        self._coordinators = coordinators
        self._shards = shards

    async def add(self, asked: Asked, header: RequestHeader, request: AddOffsetsToTxnRequest) -> Reply:
        """Add the shard of a group that the client may add. Raises Refused."""
        shard = self._here.groups.shard_for(request.group_id)
        added = as_partition(request, self._shards.topic, shard)
        try:
            link = await self._coordinators.link(request.transactional_id, TRANSACTION)
            if isinstance(link, ErrorCode):
                return encode(header, AddOffsetsToTxnResponse(error_code=link))
            response = await link.ask(added, newest=ADD_PARTITIONS, timeout_s=ANSWER_S)
        except LinkError as error:
            raise refusal(asked, f"cannot be passed on: {error}") from error
        return encode(header, as_offsets(response, header.api_version))


class OwnNames:
    """Answers FindCoordinator and AddOffsetsToTxn."""

    def __init__(
        self,
        ports: CoordinatorPorts,
        rewrite: Callable[[Asked], Answer],
        theirs: TheirGroups,
        shards: ShardAdding,
    ) -> None:
        """rewrite: passes a request on, and names kshim's ports in the answer."""
        self._ports = ports
        self._rewrite = rewrite
        self._theirs = theirs
        self._shards = shards

    def find_coordinator(self, asked: Asked) -> Answer:
        """Find groups' coordinators here, if the upstream lets the client describe the groups."""
        header, request = asked.decoded or decode(asked)
        if request.key_type != GROUP:
            return self._rewrite(asked)
        return _passed(asked).then(partial(self._found, asked, header, request))

    def _found(
        self, asked: Asked, header: RequestHeader, request: FindCoordinatorRequest, frame: bytes
    ) -> Answer:
        response = _read(asked, frame)
        assert isinstance(response, FindCoordinatorResponse)
        return self._ports.find(asked, header, request, by_key(request, response))

    def add_offsets(self, asked: Asked) -> Answer:
        """Let the upstream add a partition of __consumer_offsets, into which nobody writes. If the client may
        add the group, add its shard: the client may not write to kshim's topic, and must not have to.
        """
        header, request = asked.decoded or decode(asked)
        answer = _passed(asked)
        if request.group_id in self._theirs and not self._theirs.has_consumers:
            return answer
        return answer.then(partial(self._added, asked, header, request))

    def _added(
        self, asked: Asked, header: RequestHeader, request: AddOffsetsToTxnRequest, frame: bytes
    ) -> Answer:
        response = _read(asked, frame)
        assert isinstance(response, AddOffsetsToTxnResponse)
        return frame if response.error_code else run(self._shards.add(asked, header, request))


def _passed(asked: Asked) -> Promise[Reply]:
    check_version(asked)
    return asked.relay.passage.forward(asked.frame, asked.turn, is_read=True)


def _read(asked: Asked, frame: bytes) -> object:
    try:
        return decode_response(asked.api_key, asked.api_version, frame)[1]
    except MalformedMessage as error:
        raise not_understood(asked, error) from error
