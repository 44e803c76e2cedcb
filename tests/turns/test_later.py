"""Promises: an answer that comes later goes to its listener, once."""

from __future__ import annotations

from kshim.turns.later import Afterwards, Promise, do_all


def test_a_listener_gets_the_answer_with_its_arguments() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    promise.listen(lambda answer, _, *arguments: heard.append((answer, *arguments)), 1, 2)
    assert heard == []
    promise.answer("yes", {})
    assert heard == [("yes", 1, 2)]


def test_an_answer_that_came_before_its_listener_is_heard_with_what_follows() -> None:
    promise: Promise[str] = Promise()
    heard: list[str] = []

    def listen(answer: str, afterwards: Afterwards) -> None:
        afterwards[lambda: heard.append("afterwards")] = None
        heard.append(answer)

    promise.answer("yes", {})
    promise.listen(listen)
    assert heard == ["yes", "afterwards"]


def test_what_follows_is_done_once_when_all_answers_are_given() -> None:
    promises: list[Promise[int]] = [Promise() for _ in range(3)]
    heard: list[object] = []

    def follow() -> None:
        heard.append("afterwards")

    def listen(answer: int, afterwards: Afterwards) -> None:
        heard.append(answer)
        afterwards[follow] = None

    afterwards: Afterwards = {}
    for promise in promises:
        promise.listen(listen)
    for number, promise in enumerate(promises):
        promise.answer(number, afterwards)
    do_all(afterwards)
    assert heard == [0, 1, 2, "afterwards"]


def test_a_deferred_fires_with_the_answer() -> None:
    early: Promise[str] = Promise()
    early.answer("early", {})
    late: Promise[str] = Promise()
    heard: list[str] = []
    early.deferred().addCallback(heard.append)
    late.deferred().addCallback(heard.append)
    assert heard == ["early"]
    late.answer("late", {})
    assert heard == ["early", "late"]
