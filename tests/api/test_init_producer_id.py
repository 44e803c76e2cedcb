"""InitProducerId without a transactional id: no producer id is ever given twice."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.api.init_producer_id import init_producer_id
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest
from tests.api.harness import HeldStore, ask, collect, context, new_broker


def request(**more: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60000, **more})


def test_each_producer_gets_an_id_of_its_own() -> None:
    broker = new_broker()
    answers = [ask(init_producer_id, broker, request(), 4) for _ in range(3)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [
        (0, 0, 0),
        (0, 1, 0),
        (0, 2, 0),
    ]


def test_a_producer_that_names_an_id_gets_a_new_one() -> None:
    broker = new_broker()
    answer = ask(init_producer_id, broker, request(producer_id=5, producer_epoch=3), 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 0)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "x", "producer_id": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(wrong: dict[str, Any], error: ErrorCode) -> None:
    answer = ask(init_producer_id, new_broker(), request(**wrong), 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


def test_an_id_waits_until_its_block_is_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    waiting = [collect(init_producer_id(broker, context(4), request())) for _ in range(2)]
    assert (waiting, len(store.writes)) == ([[], []], 1)
    store.release()
    assert [answer[0].producer_id for answer in waiting] == [0, 1]
    assert ask(init_producer_id, broker, request(), 4).producer_id == 2


def test_without_a_durable_block_the_client_is_told_to_try_again() -> None:
    store = HeldStore()
    broker = new_broker(store)
    seen = collect(init_producer_id(broker, context(4), request()))
    store.fail()
    assert seen[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again = collect(init_producer_id(broker, context(4), request()))
    store.release()
    assert (again[0].error_code, again[0].producer_id) == (0, 0)
