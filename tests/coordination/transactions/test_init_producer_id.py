"""A producer begins: which epoch it gets, and which producers are fenced."""

from typing import Any

import pytest

from kshim.coordination.decision import Decision, Reply
from kshim.coordination.transactions.decision import Ending, TransactionRecord
from kshim.coordination.transactions.settings import Settings
from kshim.coordination.transactions.states import State
from kshim.coordination.transactions.transaction import LAST_PRODUCER_EPOCH, Transaction
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdResponse
from tests.coordination.transactions.history import ID, NOW_MS, T0, TIMEOUT_MS, History, init


def told(producer_id: int, producer_epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


def test_a_new_transactional_id_gets_a_producer_id_and_epoch_0() -> None:
    history = History()
    begun = Transaction(
        producer_id=1000,
        previous_producer_id=1000,
        producer_epoch=0,
        timeout_ms=TIMEOUT_MS,
        last_update_ms=NOW_MS,
    )
    assert history.decide(init()) == Decision(0, (TransactionRecord(ID, begun),), (Reply(0, told(1000, 0)),))


def test_each_producer_that_begins_fences_the_one_before() -> None:
    history = History()
    assert [history.init() for _ in range(3)] == [told(1000, epoch) for epoch in range(3)]


def test_the_timeout_is_the_last_one_that_was_asked_for() -> None:
    history = History()
    history.init()
    history.init(transaction_timeout_ms=7)
    assert history.describe().transaction_timeout_ms == 7


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_that_are_too_short_or_too_long(timeout_ms: int) -> None:
    history = History()
    assert history.init(transaction_timeout_ms=timeout_ms) == refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    assert history.transaction() is None


def test_the_longest_timeout() -> None:
    assert History(Settings(transaction_max_timeout_ms=5)).init(transaction_timeout_ms=5) == told(1000, 0)


def test_an_empty_transactional_id_is_refused_whatever_the_timeout() -> None:
    answer = History().init(transactional_id="", transaction_timeout_ms=-1)
    assert answer == refused(ErrorCode.INVALID_REQUEST)


# ---- going on (KIP-360)


def test_a_producer_goes_on_with_the_next_epoch_once_however_often_it_asks() -> None:
    history = History()
    history.init()
    assert history.init(producer_id=1000, producer_epoch=0) == told(1000, 1)
    assert history.init(producer_id=1000, producer_epoch=0) == told(1000, 1)
    assert history.init(producer_id=1000, producer_epoch=1) == told(1000, 2)


def test_after_a_restart_it_is_not_known_that_a_producer_has_asked_before() -> None:
    history = History()
    history.init()
    history.init(producer_id=1000, producer_epoch=0)
    history.restart()
    assert history.init(producer_id=1000, producer_epoch=0) == refused(ErrorCode.PRODUCER_FENCED)


def test_a_producer_cannot_go_on_where_another_has_begun() -> None:
    history = History()
    history.init()
    history.init()
    assert history.init(producer_id=1000, producer_epoch=0) == refused(ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("producer", [(999, 0), (1000, 7), (999, LAST_PRODUCER_EPOCH)])
def test_a_producer_id_or_epoch_that_was_never_given(producer: tuple[int, int]) -> None:
    history = History()
    history.init()
    producer_id, producer_epoch = producer
    answer = history.init(producer_id=producer_id, producer_epoch=producer_epoch)
    assert answer == refused(ErrorCode.PRODUCER_FENCED)


def test_a_producer_of_an_id_that_has_expired_begins_anew() -> None:
    assert History().init(producer_id=5, producer_epoch=5) == told(1000, 0)


# ---- a transaction is open or being ended


def test_an_open_transaction_is_aborted_first() -> None:
    history = History()
    history.init()
    history.add((1000, 0))
    open_ = history.transaction()
    assert open_ is not None
    fenced = open_.fenced(NOW_MS)
    assert (fenced.state, fenced.producer_epoch) == (State.PREPARE_ABORT, 1)
    assert fenced.partitions == {T0}
    assert history.decide(init()) == Decision(
        0,
        (TransactionRecord(ID, fenced),),
        (Reply(0, refused(ErrorCode.CONCURRENT_TRANSACTIONS)),),
        endings=(Ending(ID, fenced),),
    )
    assert history.init() == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    history.write_markers()
    assert history.init() == told(1000, 2)


def test_the_producer_itself_goes_on_after_its_transaction_was_aborted_for_it() -> None:
    history = History()
    history.init()
    history.add((1000, 0))
    own: dict[str, Any] = {"producer_id": 1000, "producer_epoch": 0}
    assert history.init(**own) == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    history.write_markers()
    assert history.init(**own) == told(1000, 1)


@pytest.mark.parametrize("producer", [(-1, -1), (1000, 0), (999, 9)])
def test_a_producer_that_begins_while_markers_are_written_must_retry(producer: tuple[int, int]) -> None:
    history = History()
    history.init()
    history.add((1000, 0))
    history.end((1000, 0))
    producer_id, producer_epoch = producer
    answer = history.init(producer_id=producer_id, producer_epoch=producer_epoch)
    assert answer == refused(ErrorCode.CONCURRENT_TRANSACTIONS)


# ---- no epoch is left


def exhausted() -> History:
    """Producer id 1000 with epoch 32766, the last that a client may have."""
    history = History()
    history.init()
    history.give_epoch(LAST_PRODUCER_EPOCH)
    return history


def test_a_new_producer_id_comes_before_the_epochs_run_out() -> None:
    history = exhausted()
    assert history.init() == told(1001, 0)


def test_a_producer_goes_on_with_a_new_producer_id_once_however_often_it_asks() -> None:
    history = exhausted()
    own: dict[str, Any] = {"producer_id": 1000, "producer_epoch": LAST_PRODUCER_EPOCH}
    assert history.init(**own) == told(1001, 0)
    assert history.init(**own) == told(1001, 0)
    history.restart()
    assert history.init(**own) == refused(ErrorCode.PRODUCER_FENCED)


def test_an_older_epoch_than_the_last_one_of_a_producer_id() -> None:
    history = exhausted()
    answer = history.init(producer_id=1000, producer_epoch=5)
    assert answer == refused(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka


def test_an_id_that_cannot_be_written() -> None:
    """Each byte that is not UTF-8 is decoded to a character of three bytes."""
    history = History()
    answer = history.init(transactional_id="\N{REPLACEMENT CHARACTER}" * 10_923)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert history.journal == []
