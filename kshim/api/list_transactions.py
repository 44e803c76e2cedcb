"""ListTransactions (66): the transactional ids of this broker (KIP-664).

v1: a filter by duration (KIP-994); v2: a filter by a regular expression for the id (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.coordination.patterns import InvalidPattern, Matcher
from schemas.error_code import ErrorCode
from schemas.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

STEPS_AT_ONCE = 5_000_000
"""Steps of the matcher that are made in one go. They take about 15 ms."""


async def list_transactions(
    broker: CoordinatorView, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List the transactions as they are now. A pattern is matched aside, as one id may take a second."""
    pattern = request.transactional_id_pattern
    listed = await broker.transactions.submit(context, request)
    if not pattern or listed.error_code:
        return listed
    context.turn.is_alone = True
    return await _filtered(broker, context, pattern, listed)


async def _filtered(
    broker: CoordinatorView, context: RequestContext, pattern: str, listed: ListTransactionsResponse
) -> ListTransactionsResponse:
    """Match the ids a few at a time. The patterns of other clients get their turns in between."""
    try:
        matcher = await broker.aside.run_long(partial(Matcher, pattern), context.address)
    except InvalidPattern:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    found: list[TransactionState] = []
    for some in _pieces(matcher, listed.transaction_states):
        found += await broker.aside.run_long(partial(_matching, matcher, some), context.address)
    return replace(listed, transaction_states=tuple(found))


def _pieces(matcher: Matcher, states: Iterable[TransactionState]) -> Iterator[list[TransactionState]]:
    """Divide the states into pieces that each take at most STEPS_AT_ONCE, or have one id."""
    piece: list[TransactionState] = []
    left = STEPS_AT_ONCE
    for state in states:
        steps = matcher.steps(state.transactional_id)
        if piece and steps > left:
            yield piece
            piece, left = [], STEPS_AT_ONCE
        piece.append(state)
        left -= steps
    if piece:
        yield piece


def _matching(matcher: Matcher, states: Iterable[TransactionState]) -> list[TransactionState]:
    return [state for state in states if matcher.matches(state.transactional_id)]
