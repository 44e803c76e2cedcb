"""Answers requests about groups for clients that authenticate at the upstream: its ACLs decide, as at a
broker.

Before a request is answered, the upstream is asked which of the needed rights the client has. The rules of
`kshim.access` then go by the answers. An answer counts for some seconds, and for this connection alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from kshim.cluster.acl import AclOperation, AclResource
from kshim.network import dispatch
from kshim.network.dispatch import LIGHT_ELEMENTS, MAX_ELEMENTS, Reply
from kshim.turns.promise import Promise, run, settled
from kshim.upstream.asked import Answer, Asked, Decoded, decode, refusal
from kshim.upstream.asking_rights import FIRST_FIND_WITH_KEYS, Asker
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.here import Here
from kshim.upstream.link import LinkError
from kshim.upstream.needed_rights import MAY_PARK, NAMES_MORE, NEEDED
from kshim.upstream.relay import Relay, Relays
from kshim.upstream.rights import EVERY_TOPIC, Right, Rights
from kshim.upstream.versions import BrokerVersions
from schemas.api_key import ApiKey
from schemas.message import MalformedMessage, TooManyElements
from schemas.registry import decode_request

PATIENCE_S = 5.0
"""How long new topics wait until clients were asked which of them they may describe."""
MOST_TURNS = 3
"""How often a request is answered anew because its answer names topics that had to be asked for."""
DESCRIBE_CLUSTER = Right(AclOperation.DESCRIBE, AclResource.CLUSTER)


class Judging:
    """Answers in place of `dispatch.answer`."""

    def __init__(
        self,
        here: Here,
        versions: BrokerVersions,
        every: EveryTopic,
        has_regexes: Callable[[], bool],
        relays: Relays,
    ) -> None:
        """has_regexes: returns True while a group subscribes by regular expression."""
        self._here = here
        self._versions = versions
        self._every = every
        self._has_regexes = has_regexes
        self._relays = relays.by_client
        every.before_new = self.look_at_topics

    def answer(self, asked: Asked) -> Answer:
        """Answer a request, once the client's rights are known."""
        needs = NEEDED.get(asked.api_key)
        if needs is None:
            return self._dispatch(asked, None)
        try:
            decoded = asked.decoded or decode_request(asked.frame, LIGHT_ELEMENTS)
        except TooManyElements:
            asked.turn.is_alone = True
            return run(self._answer_many(asked))
        except MalformedMessage:
            return self._dispatch(asked, self._rights(asked))  # its answer reports the fault
        return self._judge(asked._replace(decoded=decoded), decoded)

    def before(self, way: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        """Return `way`, but refuse what a client may not do to a group as a broker would."""

        def answer(asked: Asked) -> Answer:
            return run(self._answer_by(way, asked._replace(decoded=asked.decoded or decode(asked))))

        return answer

    async def _answer_by(self, way: Callable[[Asked], Answer], asked: Asked) -> Reply:
        assert asked.decoded is not None
        rights, request = self._rights(asked), asked.decoded[1]
        needed = Right(AclOperation.READ, AclResource.GROUP, request.group_id)
        await self._learn(asked, rights, [needed])
        return await settled(way(asked) if _has(rights, needed) else self._dispatch(asked, rights))

    async def may_describe(self, asked: Asked, group_ids: Sequence[str]) -> Collection[str]:
        """Return the groups that the client may see in a list."""
        rights = self._rights(asked)
        await self._learn(asked, rights, [DESCRIBE_CLUSTER])
        if _has(rights, DESCRIBE_CLUSTER):
            return frozenset(group_ids)
        wanted = [Right(AclOperation.DESCRIBE, AclResource.GROUP, each) for each in group_ids]
        await self._learn(asked, rights, wanted)
        return frozenset(each.name for each in wanted if _has(rights, each))

    def look_at_topics(self) -> Deferred[None]:
        """Ask the upstream anew which topics the clients may describe that subscribe by regular expression.
        Fires when all answers are there, after PATIENCE_S at the latest.
        """
        promises = [
            run(self._look_at_topics(relay, relay.rights))
            for relay in self._relays.values()
            if relay.rights is not None and relay.rights.knows_topics
        ]
        asked = [each.deferred() for each in promises if isinstance(each, Promise)]
        clock: Any = self._here.clock
        looked = DeferredList(asked, consumeErrors=True).addTimeout(PATIENCE_S, clock)
        return looked.addBoth(lambda _: None)

    # ---- inside

    async def _answer_many(self, asked: Asked) -> Reply:
        decode = partial(decode_request, asked.frame, MAX_ELEMENTS)
        try:
            decoded = await self._here.aside.run(decode, asked.client.address)
        except Exception:  # its answer reports the fault
            return await settled(self._dispatch(asked, self._rights(asked)))
        return await settled(self._judge(asked._replace(decoded=decoded), decoded))

    def _judge(self, asked: Asked, decoded: Decoded) -> Answer:
        rights = self._rights(asked)
        needed = list(NEEDED[asked.api_key](decoded[1], self._here.cluster))
        if asked.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT and self._has_regexes():
            needed.append(EVERY_TOPIC)  # this heartbeat may set off the search for other members' topics
        if asked.api_key in NAMES_MORE or rights.unknown(needed):
            if asked.api_key not in MAY_PARK:
                asked.turn.is_alone = True  # a LeaveGroup must not overtake a commit
            return run(self._learn_and_answer(asked, rights, needed))
        return self._dispatch(asked, rights)

    async def _learn_and_answer(self, asked: Asked, rights: Rights, needed: Iterable[Right]) -> Reply:
        for _ in range(MOST_TURNS):
            await self._learn(asked, rights, needed)
            rights.lacking.clear()
            reply = await settled(self._dispatch(asked, rights))
            needed = list(rights.lacking)
            if asked.api_key not in NAMES_MORE or not needed:
                break
        return reply

    async def _learn(self, asked: Asked, rights: Rights, needed: Iterable[Right]) -> None:
        """Ask the upstream for rights that are not known. Raises Refused."""
        unknown = rights.unknown(needed)
        if not unknown:
            return
        if EVERY_TOPIC in unknown:
            unknown.remove(EVERY_TOPIC)
            await self._look_at_topics(asked.relay, rights)
        finds_many = await self._finds_many(asked)
        for right, is_allowed in await self._asker(asked.relay).ask(unknown, finds_many=finds_many):
            rights.learn(right, is_allowed)

    async def _look_at_topics(self, relay: Relay, rights: Rights) -> None:
        """Ask the upstream for all topics that a client may describe. Raises Refused."""
        version = self._every.version
        rights.learn_topics(await self._asker(relay).topics(), version)

    def _asker(self, relay: Relay) -> Asker:
        return Asker(relay.passage, relay.client, self._here.aside)

    async def _finds_many(self, asked: Asked) -> bool:
        """True if the upstream's broker takes several keys in FindCoordinator. Raises Refused."""
        try:
            running = self._here.cluster.running
            versions = await self._versions.of_first((asked.broker.node_id, *running))
        except LinkError as error:
            raise refusal(asked, f"cannot be answered: {error}") from error
        find = (each for each in versions.api_keys if each.api_key == ApiKey.FIND_COORDINATOR)
        return any(each.max_version >= FIRST_FIND_WITH_KEYS for each in find)

    def _rights(self, asked: Asked) -> Rights:
        relay = asked.relay
        if relay.rights is None:
            relay.rights = Rights(self._here.clock.seconds, lambda: self._every.version)
        return relay.rights

    def _dispatch(self, asked: Asked, rights: Rights | None) -> Answer:
        here = self._here if rights is None else replace(self._here, authorizer=rights)
        return dispatch.answer(here, asked.frame, asked.client, asked.turn, asked.decoded)


def _has(rights: Rights, right: Right) -> bool:
    return rights.allows("", "", *right)
