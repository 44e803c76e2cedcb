"""The verbs about transactions for brokers and administrators; those for producers are in `groups`."""

from __future__ import annotations

from typing import Any

from integration.differential.words.history import TRANSACTION, Ask, Epoch, ProducerId
from integration.differential.words.records import by_topic
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def add_as_broker(
    client: str,
    *places: tuple[str, int],
    transaction: str = TRANSACTION,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    verify_only: bool = False,
    **options: Any,
) -> Ask:
    """AddPartitionsToTxn of one transaction as brokers send it, from v4 on."""
    asked = AddPartitionsToTxnTransaction(
        transactional_id=transaction,
        producer_id=ProducerId(client) if id is None else id,
        producer_epoch=Epoch(client) if epoch is None else epoch,
        verify_only=verify_only,
        topics=tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=parts)
            for topic, parts in by_topic(places, lambda index: index)
        ),
    )
    return Ask(client=client, request=AddPartitionsToTxnRequest(transactions=(asked,)), **options)


def write_markers(
    client: str,
    *places: tuple[str, int],
    committed: bool = True,
    id: int | ProducerId | None = None,
    epoch: int | Epoch | None = None,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    **options: Any,
) -> Ask:
    """WriteTxnMarkers of one marker."""
    marker = WritableTxnMarker(
        producer_id=ProducerId(client) if id is None else id,
        producer_epoch=Epoch(client) if epoch is None else epoch,
        transaction_result=committed,
        topics=tuple(
            WritableTxnMarkerTopic(name=topic, partition_indexes=parts)
            for topic, parts in by_topic(places, lambda index: index)
        ),
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    return Ask(client=client, request=WriteTxnMarkersRequest(markers=(marker,)), **options)


def describe_transactions(client: str, *transactions: str, **options: Any) -> Ask:
    return Ask(client=client, request=DescribeTransactionsRequest(transactional_ids=transactions), **options)


def list_transactions(
    client: str,
    *producers: int | ProducerId,
    states: tuple[str, ...] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
    **options: Any,
) -> Ask:
    """ListTransactions of some producer ids, or of all."""
    request = ListTransactionsRequest(
        state_filters=states,
        producer_id_filters=producers,
        duration_filter=duration_ms,
        transactional_id_pattern=pattern,
    )
    return Ask(client=client, request=request, **options)
