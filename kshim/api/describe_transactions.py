"""DescribeTransactions (65): the coordinator's state of transactional ids (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.turns.slices import AnswerElements, each_once, in_pieces
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

IDS_AT_ONCE = 200


async def describe_transactions(
    broker: CoordinatorView, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Forward each id to its shard, which answers once the state is durable. An id that is named again gets
    the same answer.
    """
    made = AnswerElements()

    async def describe(some: Sequence[str]) -> Iterable[TransactionState]:
        made.check()
        asked = DescribeTransactionsRequest(transactional_ids=tuple(some))
        answer = await broker.transactions.submit(context, asked)
        states = answer.transaction_states
        made.add(sum(len(topic.partitions) for state in states for topic in state.topics))
        return states

    async def describe_all(ids: Sequence[str]) -> Iterable[TransactionState]:
        return await in_pieces(broker.rounds, context.turn, ids, describe, IDS_AT_ONCE)

    described = await each_once(request.transactional_ids, describe_all)
    return DescribeTransactionsResponse(transaction_states=tuple(described))
