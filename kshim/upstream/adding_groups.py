"""Adds groups to transactions: a group's shard, and the group at the upstream if it may be there.

The request comes to the kshim at whose port the transaction's coordinator is. Another kshim may coordinate
the group, and only that one has seen the members of a group that is the upstream's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from kshim.network.dispatch import Reply
from kshim.turns.promise import Promise, run
from kshim.upstream.announced import check_version
from kshim.upstream.asked import Answer, Asked, decode, encode, not_understood, refusal
from kshim.upstream.here import Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.link import LinkError
from kshim.upstream.transactions import ADD_PARTITIONS, as_offsets, as_partition, error_of_partition
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from schemas.messages.api_versions import ApiVersionsResponse
from schemas.registry import decode_response, encode_request

if TYPE_CHECKING:
    from kshim.upstream.their_groups import TheirGroups


class AddingGroups:
    """Answers AddOffsetsToTxn with the answers of the upstream's transaction coordinator."""

    def __init__(
        self,
        here: Here,
        shards: GroupShards,
        theirs: TheirGroups,
        knows: Callable[[str], bool | None],
        versions: Callable[[int], Awaitable[ApiVersionsResponse]],
    ) -> None:
        """knows: returns True for a group that kshim has. versions: returns the answer of a broker of the
        upstream to ApiVersions; raises LinkError.
        """
        self._here = here
        self._shards = shards
        self._theirs = theirs
        self._knows = knows
        self._versions = versions

    def answer(self, asked: Asked) -> Answer:
        """Add the group's shard to the transaction, so that the upstream writes its end there."""
        check_version(asked)
        header, request = asked.decoded or decode(asked)
        group_id: str = request.group_id
        if group_id in self._theirs and not self._theirs.has_consumers:
            return _passed(asked, asked.frame)
        shard = self._here.groups.shard_for(group_id)
        added = as_partition(request, self._shards.topic, shard)
        head = replace(header, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, api_version=ADD_PARTITIONS)
        answer = _passed(asked, encode_request(head, added))
        if self._knows(group_id) and not self._theirs.has_consumers:
            return answer.then(partial(_shard_added, asked, header))
        return run(self._add_to_both(asked, header, answer))

    async def _add_to_both(self, asked: Asked, header: RequestHeader, answer: Promise[Reply]) -> Reply:
        """Also add the group at the upstream if it may be there. The transaction's end finds no offsets where
        the group is not.
        """
        response = _added(asked, cast("bytes", await answer))
        here = encode(header, as_offsets(response, header.api_version))
        if error_of_partition(response) is not ErrorCode.NONE:
            return here
        if self._theirs.has_consumers:
            return await _passed(asked, asked.frame)
        if not await self._serves_streams(asked):
            return here
        there = await _passed(asked, asked.frame)
        # kshim may lack the right on a group that is its own; it could not pass on the heartbeats of another.
        return here if _error(asked, there) == ErrorCode.GROUP_AUTHORIZATION_FAILED else there

    async def _serves_streams(self, asked: Asked) -> bool:
        """True if the upstream has streams groups. Raises Refused if it does not say."""
        try:
            answered = await self._versions(asked.broker.node_id)
        except LinkError as error:
            raise refusal(asked, f"cannot be passed on: {error}") from error
        return any(each.api_key == ApiKey.STREAMS_GROUP_HEARTBEAT for each in answered.api_keys)


def _passed(asked: Asked, frame: bytes | bytearray) -> Promise[Reply]:
    return asked.relay.passage.forward(frame, asked.turn, is_read=True)


def _shard_added(asked: Asked, header: RequestHeader, frame: bytes) -> Reply:
    return encode(header, as_offsets(_added(asked, frame), header.api_version))


def _added(asked: Asked, frame: bytes) -> AddPartitionsToTxnResponse:
    response = _read(asked, ApiKey.ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS, frame)
    assert isinstance(response, AddPartitionsToTxnResponse)
    return response


def _error(asked: Asked, reply: Reply) -> int:
    response = _read(asked, asked.api_key, asked.api_version, cast("bytes", reply))
    assert isinstance(response, AddOffsetsToTxnResponse)
    return response.error_code


def _read(asked: Asked, api_key: int, api_version: int, frame: bytes) -> object:
    try:
        return decode_response(api_key, api_version, frame)[1]
    except MalformedMessage as error:
        raise not_understood(asked, error) from error
