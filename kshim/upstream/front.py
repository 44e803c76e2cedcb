"""Answers the requests that arrive at kshim in front of an upstream, in place of `dispatch.answer`.

`TABLE` decides by API: a request goes through the client's `Relay` to the upstream, or to `dispatch.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredList

from kshim.api.api_versions import note_software
from kshim.callers import Client, Refused, RequestContext
from kshim.coordination.groups.refusals import DescribeGroup
from kshim.network import dispatch
from kshim.network.dispatch import MAX_ELEMENTS, Reply
from kshim.turns import Turn
from kshim.turns.later import Later
from kshim.turns.promise import Promise, run, settled
from kshim.turns.slices import Slices, in_slices
from kshim.upstream import peek
from kshim.upstream.asked import Answer, Asked, Decoded, decode, encode, not_understood, refusal
from kshim.upstream.confirming import FRESH_S, Confirming
from kshim.upstream.fellows import with_fellows
from kshim.upstream.guard import NO_ACKS, Guard
from kshim.upstream.here import HERE, Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.learning import Key
from kshim.upstream.link import LinkError
from kshim.upstream.own_topic import GUARDED, OwnTopic
from kshim.upstream.relay import Relays
from kshim.upstream.rewriting import (
    FIRST_PRODUCE_VERSION_WITH_ENDPOINTS,
    Place,
    changed,
    is_rewritten,
    versions_for,
)
from kshim.upstream.table import PASSED, TABLE, Way
from kshim.upstream.topics import Topics
from kshim.upstream.transactions import ADD_PARTITIONS, as_offsets, as_partition
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from schemas.messages.api_versions import ApiVersionsResponse
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.registry import (
    VERSIONS,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

if TYPE_CHECKING:
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.upstream_groups import UpstreamGroups

GROUP = 0
FIRST_FIND_WITH_KEYS = 4
FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_BY_ID = 10
FIRST_FETCH_WITH_GROUPS = 8
KEY_US = 10
LISTED_US = 10
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
        topics: Topics,
        shards: GroupShards,
        upstream_groups: UpstreamGroups,
        own: OwnTopic,
        relays: Relays,
        versions: BrokerVersions,
    ) -> None:
        """here: answers what is not forwarded; its node id is HERE. own: kshim's topic at the upstream.
        versions: the upstream brokers' answers to ApiVersions.
        """
        self._here = here
        self._brokers = brokers
        self._confirming = Confirming(topics)
        self._shards = shards
        self._upstream_groups = upstream_groups
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
            ApiKey.LIST_GROUPS: self._list_groups,
            ApiKey.OFFSET_COMMIT: self._about_topics,
            ApiKey.OFFSET_DELETE: self._about_topics,
            ApiKey.OFFSET_FETCH: self._about_topics,
            ApiKey.PRODUCE: self._produce,
            ApiKey.TXN_OFFSET_COMMIT: self._about_topics,
        }

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
        if asked.api_version >= FIRST_VERSION_WITH_SOFTWARE:
            note_software(asked.client, (asked.decoded or decode(asked))[1])
        return self._rewrite(asked)

    async def _versions_before_login(self, asked: Asked) -> Reply:
        header, request = asked.decoded or decode(asked)
        is_named = asked.api_version >= FIRST_VERSION_WITH_SOFTWARE
        if is_named and not note_software(asked.client, request):
            return encode(header, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
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
        """Find groups' coordinators: another kshim process, or this one at the port of a running broker."""
        header, request = asked.decoded or decode(asked)
        if request.key_type != GROUP:
            return self._rewrite(asked)
        place = self._brokers.place(asked.broker.node_id, asked.client.advertised)
        keys = request.coordinator_keys if header.api_version >= FIRST_FIND_WITH_KEYS else (request.key,)
        find = partial(self._coordinator, place, asked.client.listener_name)
        found = in_slices(self._here.rounds, asked.turn, keys, find, lambda key: KEY_US + len(key) // 8)
        return run(_encode_found(header, found))

    def _coordinator(self, place: Place, listener_name: str, group_id: str) -> Coordinator:
        shard = self._here.groups.shard_for(group_id)
        leader = self._shards.leader(shard)
        node_id = self._brokers.home(shard) if leader is None else leader.node_id
        here = self._brokers.reach(node_id, place) if leader is None else None
        found = here if leader is None else leader.addresses.get(listener_name)
        if found is None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            why = "The coordinator is not available."
            return Coordinator(key=group_id, node_id=-1, port=-1, error_code=error, error_message=why)
        return Coordinator(key=group_id, node_id=node_id, host=found.host, port=found.port, error_message="")

    def _list_groups(self, asked: Asked) -> Answer:
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

    def _about_topics(self, asked: Asked) -> Answer:
        """Learn the topics that a request names, then answer it."""
        try:
            decoded = asked.decoded or decode_request(asked.frame, dispatch.LIGHT_ELEMENTS)
        except TooManyElements:
            asked.turn.is_alone = True
            return run(self._about_many_topics(asked))
        except MalformedMessage:
            return self._answer_here(asked)
        age_s = 0 if asked.api_key == ApiKey.OFFSET_FETCH else FRESH_S
        if self._confirming.is_known(self._named(*decoded), age_s):
            return self._answer_knowing(asked, decoded)
        known = self._confirming.know(list(self._named(*decoded)), age_s)
        if known is None:
            return self._answer_knowing(asked, decoded)
        return run(self._answer_learning(asked, decoded, known))

    async def _about_many_topics(self, asked: Asked) -> Reply:
        decode = partial(decode_request, asked.frame, MAX_ELEMENTS)
        try:
            decoded = await self._here.aside.run(decode, asked.client.address)
        except Exception:  # its answer reports the fault
            return await settled(self._answer_here(asked))
        return await settled(self._about_topics(asked._replace(decoded=decoded)))

    async def _answer_learning(self, asked: Asked, decoded: Decoded, known: Deferred[None]) -> Reply:
        try:
            await known
        except LinkError as error:
            raise refusal(asked, f"names topics that cannot be asked for: {error}") from error
        return await settled(self._answer_knowing(asked, decoded))

    def _answer_knowing(self, asked: Asked, decoded: Decoded) -> Answer:
        """Answer a request whose topics are known. Before offsets are fetched, the ends of open transactions
        are read: a client must see its offsets once the upstream has confirmed its commit.
        """
        if asked.api_key != ApiKey.OFFSET_FETCH:
            return dispatch.answer(self._here, asked.frame, asked.client, asked.turn, decoded)
        header, request = decoded
        asked = asked._replace(decoded=decoded)
        groups = request.groups if header.api_version >= FIRST_FETCH_WITH_GROUPS else (request,)
        shards = {self._here.groups.shard_for(group.group_id) for group in groups}
        open_in = [shard for shard in shards if self._shards.has_open_transactions(shard)]
        if not open_in:
            return self._answer_here(asked)
        return run(self._answer_proven(asked, open_in))

    async def _answer_proven(self, asked: Asked, shards: Iterable[int]) -> Reply:
        proofs = [self._shards.journal.append(shard, (), 0) for shard in shards]
        await DeferredList(proofs, consumeErrors=True)
        return await settled(self._answer_here(asked))

    def _named(self, header: RequestHeader, request: Any) -> Iterator[Key]:
        """Yield the topics that have to be known, by name or by id."""
        by_id = header.api_version >= FIRST_VERSION_BY_ID
        if header.api_key != ApiKey.OFFSET_FETCH:
            yield from (topic.topic_id if by_id else topic.name for topic in request.topics)
            return
        for group in request.groups if header.api_version >= FIRST_FETCH_WITH_GROUPS else (request,):
            if by_id and group.topics is not None:
                yield from (topic.topic_id for topic in group.topics)
            elif (seen := self._here.groups.see(group.group_id)) is not None:
                yield from _committed(seen.committed, group.topics)


def _committed(committed: Mapping[tuple[str, int], object], topics: Iterable[Any] | None) -> Iterable[str]:
    """The names of topics for which a group has offsets: among the requested topics, or all for None."""
    if topics is None:
        return {name for name, _ in committed}
    return (
        topic.name
        for topic in topics
        if any((topic.name, index) in committed for index in topic.partition_indexes)
    )


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


async def _encode_found(header: RequestHeader, found: Later[list[Coordinator]]) -> Reply:
    """Encode the answer. Up to v3 there is one key, and its coordinator is the answer itself."""
    if header.api_version >= FIRST_FIND_WITH_KEYS:
        return encode(header, FindCoordinatorResponse(coordinators=tuple(await settled(found))))
    (one,) = await settled(found)
    message = one.error_message if one.error_code else "NONE"
    response = FindCoordinatorResponse(
        error_code=one.error_code, error_message=message, node_id=one.node_id, host=one.host, port=one.port
    )
    return encode(header, response)


def _offsets_added(asked: Asked, header: RequestHeader, frame: bytes) -> Reply:
    try:
        _, response = decode_response(ApiKey.ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS, frame)
    except MalformedMessage as error:
        raise not_understood(asked, error) from error
    assert isinstance(response, AddPartitionsToTxnResponse)
    return encode(header, as_offsets(response, header.api_version))
