"""Attacks on the coordinators of groups and transactions."""

from __future__ import annotations

import random
from collections.abc import Sequence

from integration.hostile.attack import Attack, Volley
from integration.hostile.batches import now_ms
from integration.hostile.requests import TIMEOUT_MS, TOPIC, answers, create_topic, fetch, produce, producer_id
from kshim.testing.wire import Wire, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from schemas.records.batch import Record, encode
from schemas.registry import decode_response

MOST_STRING_BYTES = 32_767
ABORTED_TRANSACTIONS = 20_000
OPEN_TRANSACTIONS = 3_000
GROUP = "attacker"


def _commit_retention(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),)
    request = OffsetCommitRequest(group_id=GROUP, retention_time_ms=2**63 - 1, topics=topics)
    frames = [framed(version, request) for version in (2, 3, 4)]
    return [Volley(label="OffsetCommit", frames=frames * 5, connections=4, in_flight=15, repeat_s=3)]


def _commit_wide(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(16_000)
    )
    in_transaction = tuple(
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(16_000)
    )
    known, few = partitions[:1], OffsetCommitRequestTopic(name=TOPIC, partitions=partitions[:1])
    wire.ask(2, OffsetCommitRequest(group_id=GROUP, topics=(few,)))
    transaction_id, epoch = producer_id(wire, "attacker")
    deleted = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in range(8_000))
    all_partitions = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    requests = [
        (
            "OffsetCommit, unknown partitions",
            2,
            OffsetCommitRequest(group_id=GROUP, topics=(all_partitions,)),
        ),
        (
            "OffsetCommit, one topic 40,000 times",
            2,
            OffsetCommitRequest(group_id=GROUP, topics=(few,) * 40_000),
        ),
        (
            "OffsetCommit, one partition 16,000 times",
            2,
            OffsetCommitRequest(
                group_id=GROUP,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=known * 16_000),),
            ),
        ),
        (
            "TxnOffsetCommit, unknown partitions",
            0,
            TxnOffsetCommitRequest(
                transactional_id="attacker",
                group_id=GROUP,
                producer_id=transaction_id,
                producer_epoch=epoch,
                topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=in_transaction),),
            ),
        ),
        (
            "OffsetDelete, unknown partitions",
            0,
            OffsetDeleteRequest(
                group_id=GROUP, topics=(OffsetDeleteRequestTopic(name=TOPIC, partitions=deleted),)
            ),
        ),
        (
            "OffsetDelete, one topic 40,000 times",
            0,
            OffsetDeleteRequest(
                group_id=GROUP, topics=(OffsetDeleteRequestTopic(name="t", partitions=deleted[:1]),) * 40_000
            ),
        ),
    ]
    return [
        Volley(label=label, frames=[framed(version, request)] * 5) for label, version, request in requests
    ]


def _list_transactions(wire: Wire) -> Sequence[Volley]:
    chance = random.Random(1)
    producer_id(wire, "".join(chance.choices("ab", k=MOST_STRING_BYTES)))
    request = ListTransactionsRequest(transactional_id_pattern="[ab]*a[ab]{999}" * 3)
    return [Volley(label="ListTransactions", frames=[framed(2, request)] * 3)]


def _pending_members(wire: Wire) -> Sequence[Volley]:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    frame = framed(4, request, client_id="c" * MOST_STRING_BYTES)
    return [Volley(label="JoinGroup", frames=[frame] * 5000, in_flight=16)]


def _aborted_index(wire: Wire) -> Sequence[Volley]:
    """Send batches of a producer, and markers between them, without the coordinator, which sees one
    transaction.
    """
    create_topic(wire)
    number, epoch = producer_id(wire, "aborting")
    _add_partition(wire, "aborting", number, epoch)
    marker = WritableTxnMarker(
        producer_id=number,
        producer_epoch=epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=TOPIC, partition_indexes=(0,)),),
    )
    abort = framed(1, WriteTxnMarkersRequest(markers=(marker,)))
    frames = []
    for sequence in range(ABORTED_TRANSACTIONS):
        frames += [_transactional("aborting", number, epoch, sequence), abort]
    found = answers(wire, frames, in_flight=32)
    _, last = decode_response(ApiKey.PRODUCE, 7, found[-2])
    assert last.responses[0].partition_responses[0].error_code == ErrorCode.NONE, last
    once = fetch(1 << 20, isolation_level=1)
    return [Volley(label="Fetch of committed records", frames=[once], repeat_s=3)]


def _open_transactions(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    producer_id(wire, "open-0")
    names = [f"open-{number}" for number in range(OPEN_TRANSACTIONS)]
    asked = [
        framed(1, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS))
        for name in names
    ]
    frames = []
    for name, answer in zip(names, answers(wire, asked, in_flight=32), strict=True):
        found = decode_response(ApiKey.INIT_PRODUCER_ID, 1, answer)[1]
        frames += [
            framed(3, _add_request(name, found.producer_id, found.producer_epoch)),
            _transactional(name, found.producer_id, found.producer_epoch, 0),
        ]
    once = fetch(1 << 20, isolation_level=1)
    return [
        Volley(label="opening them", frames=frames, in_flight=32),
        Volley(label="Fetch of committed records", frames=[once], repeat_s=3),
    ]


def _add_partition(wire: Wire, transactional_id: str, number: int, epoch: int) -> None:
    (topic,) = wire.ask(3, _add_request(transactional_id, number, epoch)).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.NONE, topic


def _add_request(transactional_id: str, number: int, epoch: int) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=number,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,)),),
    )


def _transactional(transactional_id: str, number: int, epoch: int, sequence: int) -> bytes:
    """A Produce of one small record in a transaction."""
    records = encode(
        [Record(0, now_ms(), None, b"")],
        producer_id=number,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return produce(records, transactional_id=transactional_id)


ATTACKS = (
    Attack(
        name="commit-retention",
        what="OffsetCommit v2 to v4 with the longest retention there is, for 3 s",
        arm=_commit_retention,
        quick=True,
    ),
    Attack(
        name="commit-wide",
        what="commits and deletions of offsets of many partitions, unknown or repeated",
        arm=_commit_wide,
    ),
    Attack(
        name="list-transactions",
        what="a regular expression with thousands of states, matched with the longest transactional id",
        arm=_list_transactions,
        quick=True,
    ),
    Attack(
        name="pending-members",
        what="5,000 JoinGroup without a member id, each with a client id of 32 KB",
        arm=_pending_members,
    ),
    Attack(
        name="aborted-index",
        what=f"Fetch of committed records behind {ABORTED_TRANSACTIONS:,} aborted transactions",
        arm=_aborted_index,
    ),
    Attack(
        name="open-transactions",
        what=f"{OPEN_TRANSACTIONS:,} transactions are open on one partition",
        arm=_open_transactions,
    ),
)
