"""Partitions are added to a transaction, or looked up in it."""

import pytest

from kshim.coordination.decision import Decision, Reply
from kshim.coordination.transactions.decision import TransactionRecord
from kshim.coordination.transactions.requests import AddPartitions, partition_results
from kshim.coordination.transactions.states import State
from schemas.error_code import ErrorCode
from tests.coordination.transactions.history import ID, NOW_MS, OTHER, T0, T1, History

NONE, ABORTABLE = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE


@pytest.fixture
def history() -> History:
    """A history with a producer of id 1000 and epoch 0."""
    history = History()
    history.init()
    return history


def test_the_first_partition_begins_the_transaction(history: History) -> None:
    before = history.transaction()
    assert before is not None
    history.now_ms += 5
    decision = history.decide(AddPartitions(ID, 1000, 0, (T1, T0)))
    after = before.with_partitions(frozenset({T0, T1}), 0, NOW_MS + 5)
    assert decision == Decision(
        0, (TransactionRecord(ID, after),), (Reply(0, partition_results(ID, [(T1, NONE), (T0, NONE)])),)
    )
    assert (after.state, after.start_ms, after.last_update_ms) == (State.ONGOING, NOW_MS + 5, NOW_MS + 5)


def test_more_partitions_join_the_transaction_that_is_open(history: History) -> None:
    history.add((1000, 0), T0)
    history.now_ms += 5
    history.add((1000, 0), OTHER)
    transaction = history.transaction()
    assert transaction is not None
    assert transaction.partitions == {T0, OTHER}
    assert (transaction.start_ms, transaction.last_update_ms) == (NOW_MS, NOW_MS + 5)


def test_what_is_known_is_not_written_again(history: History) -> None:
    history.add((1000, 0), T0, T1)
    request = AddPartitions(ID, 1000, 0, (T1,))
    assert history.decide(request) == Decision(0, (), (Reply(0, partition_results(ID, [(T1, NONE)])),))


def test_the_transaction_knows_whether_its_client_gets_an_epoch_each_time(history: History) -> None:
    history.add((1000, 0), T0, transaction_version=2)
    assert history.transaction() == history.transaction()
    transaction = history.transaction()
    assert transaction is not None
    assert transaction.transaction_version == 2


@pytest.mark.parametrize("verify_only", [False, True])
@pytest.mark.parametrize(
    ("producer", "error"),
    [
        ((999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((999, 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((1000, 1), ErrorCode.PRODUCER_FENCED),
        ((1000, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_producer(
    history: History, producer: tuple[int, int], error: ErrorCode, verify_only: bool
) -> None:
    assert history.add(producer, verify_only=verify_only) is error
    history.add((1000, 0))
    assert history.add(producer, verify_only=verify_only) is error


@pytest.mark.parametrize("verify_only", [False, True])
def test_an_unknown_transactional_id(verify_only: bool) -> None:
    error = History().add((1000, 0), verify_only=verify_only)
    assert error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("verify_only", [False, True])
def test_an_empty_transactional_id(history: History, verify_only: bool) -> None:
    answer = history.ask(AddPartitions("", 1000, 0, (T0,), verify_only))
    assert answer == partition_results("", [(T0, ErrorCode.INVALID_REQUEST)])


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("verify_only", [False, True])
def test_nothing_joins_a_transaction_that_is_being_ended(
    history: History, committed: bool, verify_only: bool
) -> None:
    history.add((1000, 0), T0)
    history.end((1000, 0), committed, version=4)
    assert history.add((1000, 0), T0, verify_only=verify_only) is ErrorCode.CONCURRENT_TRANSACTIONS
    history.write_markers()
    assert history.add((1000, 0), T0, verify_only=verify_only) is (ABORTABLE if verify_only else NONE)


def test_the_next_transaction_begins_at_its_own_time(history: History) -> None:
    history.add((1000, 0), T0)
    history.end((1000, 0), version=4)
    history.write_markers()
    history.now_ms += 100
    history.add((1000, 0), T1)
    transaction = history.transaction()
    assert transaction is not None
    assert (transaction.partitions, transaction.start_ms) == ({T1}, NOW_MS + 100)


def test_each_partition_is_asked_for_by_itself(history: History) -> None:
    history.add((1000, 0), T0)
    answer = history.ask(AddPartitions(ID, 1000, 0, (T0, T1, OTHER), verify_only=True))
    assert answer == partition_results(ID, [(T0, NONE), (T1, ABORTABLE), (OTHER, ABORTABLE)])
