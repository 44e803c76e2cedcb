"""A call asks again while its time lasts, and says what it lacked."""

from __future__ import annotations

import pytest

from kshim.testing.brokers import Again, Deadline, Refused, check
from schemas.error_code import ErrorCode


def test_a_step_is_tried_until_it_succeeds() -> None:
    attempts = iter([Again("not yet"), ConnectionResetError("gone"), None])

    def step() -> str:
        error = next(attempts)
        if error:
            raise error
        return "done"

    assert Deadline(5).until_done(step) == "done"


def test_the_time_is_over() -> None:
    def step() -> None:
        raise Again("there is no topic t")

    with pytest.raises(TimeoutError, match=r"not within 0\.02 s: there is no topic t"):
        Deadline(0.02).until_done(step)


def test_a_refusal_is_told_at_once() -> None:
    def step() -> None:
        check("create topic t", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")

    with pytest.raises(Refused, match=r"create topic t: TOPIC_ALREADY_EXISTS: Topic 't' already") as caught:
        Deadline(5).until_done(step)
    assert caught.value.error_code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_what_kafka_calls_retriable_is_tried_again() -> None:
    with pytest.raises(Again, match="NOT_COORDINATOR"):
        check("group g", ErrorCode.NOT_COORDINATOR)
