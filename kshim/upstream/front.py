"""Answers the requests that arrive at kshim in front of an upstream, in place of `dispatch.answer`.

`TABLE` decides by API: a request goes through the client's `Relay` to the upstream, or to `dispatch.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kshim.api.api_versions import ANY_NODE, not_as_expected, note_software
from kshim.callers import Client, Refused
from kshim.network import dispatch
from kshim.network.dispatch import Reply
from kshim.turns import Turn
from kshim.turns.promise import Promise, run
from kshim.upstream import peek
from kshim.upstream.asked import Answer, Asked, Decoded, decode, encode, not_understood, refusal
from kshim.upstream.confirming import Confirming
from kshim.upstream.coordinator_ports import CoordinatorPorts
from kshim.upstream.fellows import with_fellows
from kshim.upstream.guard import NO_ACKS, Guard
from kshim.upstream.here import Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.link import LinkError
from kshim.upstream.offset_requests import OffsetRequests
from kshim.upstream.own_topic import GUARDED, OwnTopic
from kshim.upstream.relay import Relays
from kshim.upstream.rewriting import (
    FIRST_PRODUCE_VERSION_WITH_ENDPOINTS,
    changed,
    is_rewritten,
    versions_for,
)
from kshim.upstream.table import PASSED, TABLE, Way
from kshim.upstream.transactions import ADD_PARTITIONS, as_offsets, as_partition
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from schemas.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.registry import (
    VERSIONS,
    decode_response,
    encode_request,
    encode_response,
)

if TYPE_CHECKING:
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.upstream_groups import UpstreamGroups

GROUP = 0
FIRST_VERSION_WITH_SOFTWARE = 3
LARGE_BYTES = 64 * 1024
"""Answers above this size are decoded and encoded aside."""
KEPT_BYTES = 1024
"""How much of a request is kept while its answer is awaited: enough to name the client in a log line."""


class Front:
    """Answers for all ports. `broker.node_id` is the upstream broker at whose port a request arrived."""

    def __init__(
        self,
        here: Here,
        brokers: Brokers,
        confirming: Confirming,
        shards: GroupShards,
        upstream_groups: UpstreamGroups,
        own: OwnTopic,
        relays: Relays,
        versions: BrokerVersions,
        changes: Mapping[ApiKey, Callable[[], object]],
    ) -> None:
        """here: answers what is not forwarded; its node id is HERE. confirming: asks for the topics of
        offsets. own: kshim's topic at the upstream. versions: the upstream brokers' answers to ApiVersions.
        changes: called when a request of these APIs passes.
        """
        self._here = here
        self._brokers = brokers
        self._shards = shards
        self._ports = CoordinatorPorts(here, brokers, shards, upstream_groups)
        self._offsets = OffsetRequests(here, confirming, shards)
        self._own = own
        self._relays = relays.by_client
        self._versions = versions
        guard = Guard(own, here.aside)
        self._guarded_produce = guard.before(self._pass_produce)
        of_ways = {
            Way.FORWARDED: self._forward,
            Way.REWRITTEN: self._rewrite,
            Way.OURS: self._answer_here,
            Way.HIDDEN: self._refuse,
        }
        self._does: dict[int, Callable[[Asked], Answer]] = {
            **{api_key: of_ways[entry.way] for api_key, entry in TABLE.items()},
            **{api_key: guard.before(of_ways[TABLE[api_key].way]) for api_key in GUARDED},
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.LIST_GROUPS: self._ports.list,
            ApiKey.OFFSET_COMMIT: self._offsets.answer,
            ApiKey.OFFSET_DELETE: self._offsets.answer,
            ApiKey.OFFSET_FETCH: self._offsets.answer,
            ApiKey.PRODUCE: self._produce,
            ApiKey.TXN_OFFSET_COMMIT: self._offsets.answer,
        }

        for api_key, note in changes.items():
            self._does[api_key] = _noting(note, self._does[api_key])

    def answer(
        self,
        broker: Here,
        frame: bytes | bytearray,
        client: Client,
        turn: Turn,
        decoded: Decoded | None = None,
    ) -> Answer:
        """Like `dispatch.answer`.

        decoded: the frame's header and request, if they are decoded already. The upstream's answer is then
        collected whole, however large it is.
        """
        if len(frame) < peek.HEAD_BYTES:
            raise Refused(f"{client.address}: a request of {len(frame)} bytes, which is less than a header")
        relay = self._relays.get(client)
        if relay is None:
            raise Refused(f"{client.address}: has left before its request was answered", logging.DEBUG)
        asked = Asked(broker, frame, client, relay, turn, decoded, *peek.head(frame))
        return self._does.get(asked.api_key, self._refuse)(asked)

    # ---- the ways

    def _forward(self, asked: Asked) -> Promise[Reply]:
        self._check_version(asked)
        whole = asked.decoded is not None
        return asked.relay.passage.forward(asked.frame, asked.turn, is_read=whole)

    def _rewrite(self, asked: Asked) -> Promise[Reply]:
        self._check_version(asked)
        answer = asked.relay.passage.forward(asked.frame, asked.turn, is_read=True)
        if len(asked.frame) > KEPT_BYTES:
            asked = asked._replace(frame=asked.frame[:KEPT_BYTES], decoded=None)
        return answer.then(partial(self._rewritten, asked))

    def _answer_here(self, asked: Asked) -> Answer:
        return dispatch.answer(self._here, asked.frame, asked.client, asked.turn, asked.decoded)

    def _refuse(self, asked: Asked) -> Answer:
        raise refusal(asked, "is not served in front of an upstream")

    def _check_version(self, asked: Asked) -> None:
        """Raise Refused for a version that is not announced, even if the upstream would answer it."""
        versions = PASSED.get(asked.api_key)
        if versions is None or asked.api_version not in versions:
            raise refusal(asked, "is a version that was not announced")

    def _rewritten(self, asked: Asked, frame: bytes) -> Answer:
        """Write the upstream's answer anew with kshim's addresses, if it names brokers."""
        api_key, version = asked.api_key, asked.api_version
        if not is_rewritten(api_key, version, frame):
            return frame
        if len(frame) > LARGE_BYTES:
            return run(self._rewritten_aside(asked, frame))
        try:
            correlation_id, response = decode_response(api_key, version, frame)
        except MalformedMessage as error:
            raise not_understood(asked, error) from error
        rewritten = self._with_our_addresses(asked, response)
        if rewritten is response:
            return frame
        return encode_response(api_key, version, correlation_id, rewritten)

    async def _rewritten_aside(self, asked: Asked, frame: bytes) -> Reply:
        api_key, version, address = asked.api_key, asked.api_version, asked.client.address
        read = partial(decode_response, api_key, version, frame)
        try:
            correlation_id, response = await self._here.aside.run(read, address)
        except MalformedMessage as error:
            raise not_understood(asked, error) from error
        rewritten = self._with_our_addresses(asked, response)
        if rewritten is response:
            return frame
        write = partial(encode_response, api_key, version, correlation_id, rewritten)
        return await self._here.aside.run(write, address)

    def _with_our_addresses(self, asked: Asked, response: object) -> object:
        place = self._brokers.place(asked.broker.node_id, asked.client.advertised)
        fellows, gone = self._shards.fellows(), self._shards.gone()
        ours = self._own.marked(asked.api_key, changed(asked.api_key, response, place))
        return with_fellows(asked.api_key, ours, fellows, gone, asked.client.listener_name)

    # ---- single APIs

    def _produce(self, asked: Asked) -> Answer:
        """Pass a Produce on. One that has several topics, names kshim's own, or cannot be read goes to the
        guard.
        """
        head = peek.produce_head(asked.frame, asked.api_version)
        if head is None or head.topics > 1 or self._own.is_first(head.topic):
            return self._guarded_produce(asked)
        return self._pass_acks(asked, head.acks)

    def _pass_produce(self, asked: Asked) -> Answer:
        head = peek.produce_head(asked.frame, asked.api_version)
        return self._pass_acks(asked, None if head is None else head.acks)

    def _pass_acks(self, asked: Asked, acks: int | None) -> Answer:
        """Pass a Produce on. With acks=0 it has no answer; from v10 on a small answer may name brokers."""
        if acks == NO_ACKS:
            self._check_version(asked)
            asked.relay.passage.send(asked.frame)
            return None
        if asked.api_version < FIRST_PRODUCE_VERSION_WITH_ENDPOINTS:
            return self._forward(asked)
        return self._rewrite(asked)

    def _api_versions(self, asked: Asked) -> Answer:
        """Pass ApiVersions on. A version that kshim does not know gets kshim's answer, which lists the
        versions.
        """
        if asked.api_version not in VERSIONS[ApiKey.API_VERSIONS]:
            return self._answer_here(asked)
        if not asked.relay.is_let_in:
            return run(self._versions_before_login(asked))
        if asked.api_version < FIRST_VERSION_WITH_SOFTWARE:
            return self._rewrite(asked)
        header, request = asked.decoded or decode(asked)
        note_software(asked.client, request)
        expected = self._as_upstream(asked, request)
        if expected is not request:
            asked = asked._replace(frame=encode_request(header, expected), decoded=None)
        return self._rewrite(asked)

    def _as_upstream(self, asked: Asked, request: ApiVersionsRequest) -> ApiVersionsRequest:
        """From v5 on, a client names the node to which it connects (KIP-1242). As a coordinator, this process
        has a node id of its own, which the upstream broker does not know.
        """
        if request.node_id == ANY_NODE or not self._shards.is_here(request.node_id):
            return request
        return replace(request, node_id=asked.broker.node_id)

    async def _versions_before_login(self, asked: Asked) -> Reply:
        header, request = asked.decoded or decode(asked)
        is_named = asked.api_version >= FIRST_VERSION_WITH_SOFTWARE
        if is_named and not note_software(asked.client, request):
            return encode(header, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        expected, cluster = self._as_upstream(asked, request), self._here.cluster
        unexpected = not_as_expected(cluster.cluster_id, asked.broker.node_id, expected)
        if unexpected is not ErrorCode.NONE:
            return encode(header, ApiVersionsResponse(error_code=unexpected))
        place = self._brokers.place(asked.broker.node_id, asked.client.advertised)
        try:
            response = await self._versions.of(asked.broker.node_id)
        except LinkError as error:
            raise refusal(asked, f"cannot be answered: {error}") from error
        return encode(header, versions_for(header.api_version, response, place))

    def _add_offsets(self, asked: Asked) -> Promise[Reply]:
        """Add the group's shard to the transaction, so that the upstream writes its end there. The upstream's
        transaction coordinator answers.
        """
        self._check_version(asked)
        header, request = asked.decoded or decode(asked)
        shard = self._here.groups.shard_for(request.group_id)
        added = as_partition(request, self._shards.topic, shard)
        head = replace(header, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, api_version=ADD_PARTITIONS)
        answer = asked.relay.passage.forward(encode_request(head, added), asked.turn, is_read=True)
        return answer.then(partial(_offsets_added, asked, header))

    def _find_coordinator(self, asked: Asked) -> Answer:
        """Find groups' coordinators here. The upstream finds all others."""
        header, request = asked.decoded or decode(asked)
        if request.key_type != GROUP:
            return self._rewrite(asked)
        return self._ports.find(asked, header, request)


def _noting(note: Callable[[], object], way: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return `way` with a call of `note` before it."""

    def answer(asked: Asked) -> Answer:
        note()
        return way(asked)

    return answer


def _offsets_added(asked: Asked, header: RequestHeader, frame: bytes) -> Reply:
    try:
        _, response = decode_response(ApiKey.ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS, frame)
    except MalformedMessage as error:
        raise not_understood(asked, error) from error
    assert isinstance(response, AddPartitionsToTxnResponse)
    return encode(header, as_offsets(response, header.api_version))
