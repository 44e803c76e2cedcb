"""Requests about offsets. The topics that they name are learned from the upstream first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from kshim.network import dispatch
from kshim.network.dispatch import MAX_ELEMENTS, Reply
from kshim.turns.promise import run, settled
from kshim.upstream.asked import Answer, Asked, Decoded, refusal
from kshim.upstream.confirming import FRESH_S, Confirming
from kshim.upstream.here import Here
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.learning import Key
from kshim.upstream.link import LinkError
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.registry import decode_request

FIRST_VERSION_BY_ID = 10
FIRST_FETCH_WITH_GROUPS = 8


class OffsetRequests:
    """Answers OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete."""

    def __init__(
        self, here: Here, confirming: Confirming, shards: GroupShards, answer_here: Callable[[Asked], Answer]
    ) -> None:
        """answer_here: answers a request whose topics are known."""
        self._here = here
        self._answer_here = answer_here
        self._confirming = confirming
        self._shards = shards

    def answer(self, asked: Asked) -> Answer:
        """Learn the topics that a request names, then answer it."""
        try:
            decoded = asked.decoded or decode_request(asked.frame, dispatch.LIGHT_ELEMENTS)
        except TooManyElements:
            asked.turn.is_alone = True
            return run(self._answer_many(asked))
        except MalformedMessage:
            return self._answer_here(asked)
        age_s = 0 if asked.api_key == ApiKey.OFFSET_FETCH else FRESH_S
        if self._confirming.is_known(self._named(*decoded), age_s):
            return self._answer_knowing(asked, decoded)
        known = self._confirming.know(list(self._named(*decoded)), age_s)
        if known is None:
            return self._answer_knowing(asked, decoded)
        return run(self._answer_learning(asked, decoded, known))

    async def _answer_many(self, asked: Asked) -> Reply:
        decode = partial(decode_request, asked.frame, MAX_ELEMENTS)
        try:
            decoded = await self._here.aside.run(decode, asked.client.address)
        except Exception:  # its answer reports the fault
            return await settled(self._answer_here(asked))
        return await settled(self.answer(asked._replace(decoded=decoded)))

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
        asked = asked._replace(decoded=decoded)
        if asked.api_key != ApiKey.OFFSET_FETCH:
            return self._answer_here(asked)
        header, request = decoded
        groups = request.groups if header.api_version >= FIRST_FETCH_WITH_GROUPS else (request,)
        shards = {self._here.groups.shard_for(group.group_id) for group in groups}
        open_in = [shard for shard in shards if self._shards.has_open_transactions(shard)]
        if not open_in:
            return self._answer_here(asked)
        return run(self._answer_proven(asked, open_in))

    async def _answer_proven(self, asked: Asked, shards: Iterable[int]) -> Reply:
        proofs = [self._shards.journal.prove_leadership(shard) for shard in shards]
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
