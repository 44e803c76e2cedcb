"""Describes and lists transactional ids for administrators (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.coordination.transactions.requests import sorted_by_topic
from kshim.coordination.transactions.states import BY_TEXT
from kshim.coordination.transactions.transaction import Transaction
from schemas.messages.describe_transactions import TopicData, TransactionState
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.list_transactions import TransactionState as ListedTransaction


def describe(transactional_id: str, transaction: Transaction) -> TransactionState:
    """The state of one id, with the sorted partitions of a transaction that is open or ending."""
    topics = sorted_by_topic(transaction.partitions)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=tuple(TopicData(topic=topic, partitions=tuple(indexes)) for topic, indexes in topics.items()),
    )


def listed(
    transactions: Iterable[tuple[str, Transaction]],
    request: ListTransactionsRequest,
    now_ms: int,
) -> Iterator[ListedTransaction]:
    """The transactions that pass every filter of the request but the id's pattern, which is not applied."""
    producer_ids = frozenset(request.producer_id_filters)
    states = {BY_TEXT[text] for text in request.state_filters if text in BY_TEXT}
    for transactional_id, transaction in transactions:
        if (
            (not producer_ids or transaction.producer_id in producer_ids)
            and (not request.state_filters or transaction.state in states)
            and (request.duration_filter < 0 or now_ms - transaction.start_ms > request.duration_filter)
        ):
            yield ListedTransaction(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.text,
            )


def unknown_states(request: ListTransactionsRequest) -> tuple[str, ...]:
    """The states in the request's filter that do not exist, each once."""
    return tuple(dict.fromkeys(text for text in request.state_filters if text not in BY_TEXT))
