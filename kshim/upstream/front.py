"""Answers the requests that arrive at kshim in front of an upstream, in place of `dispatch.answer`.

`TABLE` decides by API: a request goes through the client's `Relay` to the upstream, or to `dispatch.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from kshim.api.api_versions import ANY_NODE, not_as_expected, note_software
from kshim.callers import Client, Refused
from kshim.network import dispatch
from kshim.network.dispatch import Reply
from kshim.turns import Turn
from kshim.turns.promise import Promise, run
from kshim.upstream import peek, raw
from kshim.upstream.adding_groups import AddingGroups
from kshim.upstream.announced import check_version
from kshim.upstream.asked import Answer, Asked, Decoded, decode, encode, not_understood, refusal
from kshim.upstream.confirming import Confirming
from kshim.upstream.coordinator_ports import GROUP, CoordinatorPorts
from kshim.upstream.fellows import Fellow, place_at, port_id, with_fellows, with_port_ids
from kshim.upstream.guard import NO_ACKS, Guard
from kshim.upstream.here import Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.link import LinkError
from kshim.upstream.offset_requests import OffsetRequests
from kshim.upstream.own_names import OwnNames, ShardAdding
from kshim.upstream.own_topic import GUARDED, OwnTopic
from kshim.upstream.relay import Relays
from kshim.upstream.rewriting import (
    FIRST_PRODUCE_VERSION_WITH_ENDPOINTS,
    Place,
    changed,
    is_rewritten,
    versions_for,
)
from kshim.upstream.table import TABLE, Way
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.registry import (
    VERSIONS,
    decode_response,
    encode_request,
    encode_response,
)

if TYPE_CHECKING:
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.judging import Judging
    from kshim.upstream.sides import Sides
    from kshim.upstream.upstream_groups import UpstreamGroups

OFFSETS = (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_DELETE, ApiKey.OFFSET_FETCH, ApiKey.TXN_OFFSET_COMMIT)
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
        sides: Sides,
        judging: Judging | None = None,
    ) -> None:
        """here: answers what is not forwarded; its node id is HERE. confirming: asks for the topics of
        offsets. own: kshim's topic at the upstream. versions: the upstream brokers' answers to ApiVersions.
        changes: called when a request of these APIs passes. sides: the groups of both sides. judging: answers
        as `here` for clients that authenticate at the upstream; None if they do so here.
        """
        self._here = here
        self._brokers = brokers
        self._shards = shards
        self._answer_here = partial(_answer_here, here) if judging is None else judging.answer
        may_describe = None if judging is None else judging.may_describe
        self._ports = CoordinatorPorts(here, brokers, shards, upstream_groups, may_describe)
        self._offsets = OffsetRequests(here, confirming, shards, self._answer_here)
        self._own = own
        self._relays = relays.by_client
        self._versions = versions
        self._theirs, self._others, others = sides.theirs, sides.others, sides.others
        self._passed: Collection[int] = ()
        """APIs that the upstream answers, though kshim could."""
        guard = Guard(own, here.aside)
        self._guarded_produce = guard.before(self._pass_produce)
        of_ways = {
            Way.FORWARDED: self._forward,
            Way.REWRITTEN: self._rewrite,
            Way.COORDINATOR: self._to_coordinator,
            Way.OURS: self._answer_here,
            Way.HIDDEN: self._refuse,
        }
        adding = AddingGroups(here, shards, self._theirs, others.knows, versions.of)
        self._does: dict[int, Callable[[Asked], Answer]] = {
            **{api_key: of_ways[entry.way] for api_key, entry in TABLE.items()},
            **{api_key: guard.before(of_ways[TABLE[api_key].way]) for api_key in GUARDED},
            ApiKey.ADD_OFFSETS_TO_TXN: adding.answer,
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.LIST_GROUPS: self._ports.list,
            **{api_key: others.before(self._offsets.answer) for api_key in OFFSETS},
            ApiKey.PRODUCE: self._produce,
            ApiKey.SHARE_ACKNOWLEDGE: self._share,
            ApiKey.SHARE_FETCH: self._share,
        }
        if self._theirs.has_consumers:
            self._passed = (ApiKey.CONSUMER_GROUP_HEARTBEAT,)
            self._does[ApiKey.CONSUMER_GROUP_HEARTBEAT] = (
                sides.consumers.answer if judging is None else judging.before(sides.consumers.answer)
            )
        if judging is not None:
            others.pass_on = self._forward
            shard_adding = ShardAdding(here, upstream_groups.coordinators, shards)
            own_names = OwnNames(self._ports, self._rewrite, self._theirs, shard_adding)
            self._does[ApiKey.ADD_OFFSETS_TO_TXN] = own_names.add_offsets
            self._does[ApiKey.FIND_COORDINATOR] = own_names.find_coordinator
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
        check_version(asked)
        whole = asked.decoded is not None
        return asked.relay.passage.forward(asked.frame, asked.turn, is_read=whole)

    def _rewrite(self, asked: Asked) -> Promise[Reply]:
        check_version(asked)
        answer = asked.relay.passage.forward(asked.frame, asked.turn, is_read=True)
        if len(asked.frame) > KEPT_BYTES:
            asked = asked._replace(frame=asked.frame[:KEPT_BYTES], decoded=None)
        return answer.then(partial(self._rewritten, asked))

    def _to_coordinator(self, asked: Asked) -> Answer:
        check_version(asked)
        return self._others.answer(asked)

    def _refuse(self, asked: Asked) -> Answer:
        raise refusal(asked, "is not served in front of an upstream")

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

    def _place(self, asked: Asked) -> tuple[Fellow, Place]:
        """Return the kshim process at which the client goes on, and where it finds the upstream's brokers."""
        if successors := self._shards.successors():
            at = successors[crc32(asked.client.host.encode()) % len(successors)]
            return at, place_at(at, asked.client.listener_name)
        return self._shards.here(), self._brokers.place(
            asked.broker.node_id, asked.client.advertised, asked.client.listener_name
        )

    def _with_our_addresses(self, asked: Asked, response: object) -> object:
        shards, listener_name = self._shards, asked.client.listener_name
        at, place = self._place(asked)
        # Who has met others goes on to name its ports, though it is alone now.
        fellows = shards.fellows() or ((shards.here(),) if shards.has_met else ())
        ours = self._own.marked(asked.api_key, changed(asked.api_key, response, place, self._passed))
        if asked.api_key == ApiKey.FIND_COORDINATOR and fellows:
            return with_port_ids(ours, at)
        return with_fellows(asked.api_key, ours, fellows, shards.gone(), listener_name)

    # ---- single APIs

    def _share(self, asked: Asked) -> Promise[Reply]:
        """Pass a ShareFetch or ShareAcknowledge on to the leader at whose port it arrives."""
        check_version(asked)
        answer = asked.relay.passage.forward(asked.frame, asked.turn, is_read=True)
        return answer.then(
            partial(self._shared, asked._replace(frame=asked.frame[:KEPT_BYTES], decoded=None))
        )

    def _shared(self, asked: Asked, frame: bytes) -> Reply:
        try:
            return raw.with_endpoints(asked.api_key, asked.api_version, bytes(frame), self._place(asked)[1])
        except raw.Unreadable as error:
            raise not_understood(asked, error) from error

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
            check_version(asked)
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
        if not asked.relay.is_let_in or self._is_coordinator(asked):
            return run(self._known_versions(asked))
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
        has node ids of its own, which the upstream broker does not know.
        """
        if request.node_id == ANY_NODE:
            return request
        here, broker_id = self._shards.here(), asked.broker.node_id
        is_ours = request.node_id in (here.node_id, port_id(here, broker_id))
        return replace(request, node_id=broker_id) if is_ours else request

    def _is_coordinator(self, asked: Asked) -> bool:
        """True at the port by which clients of several kshim find this one as a coordinator. It must not
        matter there whether the broker of the port runs.
        """
        return asked.broker.node_id == self._brokers.anchor and bool(self._shards.fellows())

    async def _known_versions(self, asked: Asked) -> Reply:
        """Answer without a passage, by what a broker has told kshim."""
        others = self._brokers.running if self._is_coordinator(asked) else ()
        header, request = asked.decoded or decode(asked)
        is_named = asked.api_version >= FIRST_VERSION_WITH_SOFTWARE
        if is_named and not note_software(asked.client, request):
            return encode(header, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        expected, cluster = self._as_upstream(asked, request), self._here.cluster
        unexpected = not_as_expected(cluster.cluster_id, asked.broker.node_id, expected)
        if unexpected is not ErrorCode.NONE:
            return encode(header, ApiVersionsResponse(error_code=unexpected))
        try:
            response = await self._versions.of_first((asked.broker.node_id, *others))
        except LinkError as error:
            raise refusal(asked, f"cannot be answered: {error}") from error
        return encode(header, versions_for(header.api_version, response, self._passed))

    def _find_coordinator(self, asked: Asked) -> Answer:
        """Find groups' coordinators here. The upstream finds all others."""
        header, request = asked.decoded or decode(asked)
        if request.key_type != GROUP:
            return self._rewrite(asked)
        return self._ports.find(asked, header, request)


def _answer_here(here: Here, asked: Asked) -> Answer:
    return dispatch.answer(here, asked.frame, asked.client, asked.turn, asked.decoded)


def _noting(note: Callable[[], object], way: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return `way` with a call of `note` before it."""

    def answer(asked: Asked) -> Answer:
        note()
        return way(asked)

    return answer
