"""Differences of transactions."""

from __future__ import annotations

from typing import Any

from integration.differential.differences.configs import described_config
from integration.differential.differences.guest import NO_ANSWER, PATIENCE_S, Guest, soon
from integration.differential.differences.partitions import PRODUCE, one, producing
from integration.differential.differences.scenario import difference
from integration.differential.differences.topics import enlarged
from integration.differential.stories.transactions import Producer
from integration.support.awaiting import wait_until
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.list_transactions import ListTransactionsRequest


@difference("D-transactions-topic", apache_kafka="NONE", kshim="POLICY_VIOLATION")
def enlarging_the_topic_of_transactions(guest: Guest) -> str:
    Producer(guest, version=1).init()
    return enlarged(guest, "__transaction_state")


@difference("D-add-to-no-transaction", apache_kafka=NO_ANSWER, kshim="NONE")
def partitions_are_added_to_no_transaction(guest: Guest) -> str:
    return guest.error(4, AddPartitionsToTxnRequest(transactions=()))


@difference("D-two-phase-commit", apache_kafka=False, kshim=True)
def whether_two_phase_commit_is_said_to_have_no_effect(guest: Guest) -> bool:
    return "no effect" in described_config(guest, "transaction.two.phase.commit.enable").documentation


PATTERNS = ("((a{30}){30}){2}", ".{1000}.{1000}", r"\é", r"\C", "(?P<é>a)", "(?P<n>a)(?P<n>b)")


@difference(
    "D-patterns",
    apache_kafka=[*["NONE"] * 3, *["INVALID_REGULAR_EXPRESSION"] * 3],
    kshim=[*["INVALID_REGULAR_EXPRESSION"] * 3, *["NONE"] * 3],
)
def patterns_that_are_read_in_two_ways(guest: Guest) -> list[str]:
    asked = ListTransactionsRequest()
    wait_until(lambda: guest.error(2, asked) == "NONE", PATIENCE_S, "the transactions are loaded")
    return [guest.error(2, ListTransactionsRequest(transactional_id_pattern=each)) for each in PATTERNS]


@difference("D-refused-marker", apache_kafka="PrepareCommit", kshim="CompleteCommit")
def a_marker_of_an_epoch_that_is_no_more(guest: Guest) -> str:
    guest.create("t")
    producer = Producer(guest, version=1)
    producer.init()
    producer.add(("t", 0))
    ids: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch + 5}
    assert guest.error(PRODUCE, producing(guest, "t", one(base_sequence=0, **ids))) == "NONE"
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    assert guest.error(1, request) == "NONE"
    return soon(producer.state, "CompleteCommit")
