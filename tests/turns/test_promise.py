"""An answer that comes later goes to its listener, or to the coroutine that awaits it, once."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from kshim.turns.promise import Promise, run, settled, together


def test_a_listener_gets_the_answer_with_its_arguments() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    promise.listen(lambda *heard_: heard.append(heard_), 1, 2)
    assert heard == []
    promise.answer("yes")
    assert heard == [("yes", 1, 2)]


def test_an_answer_that_came_before_its_listener_is_heard_with_what_follows() -> None:
    promise: Promise[str] = Promise()
    heard: list[str] = []

    def listen(answer: str) -> Any:
        heard.append(answer)
        return lambda: heard.append("afterwards")

    promise.answer("yes")
    promise.listen(listen)
    assert heard == ["yes", "afterwards"]


def test_what_follows_is_left_to_the_one_who_answers() -> None:
    promise: Promise[str] = Promise()
    heard: list[str] = []
    promise.listen(lambda answer: lambda: heard.append(answer))
    do = promise.answer("yes")
    assert heard == []
    assert do is not None
    do()
    assert heard == ["yes"]


def test_a_function_makes_the_answer_from_another() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    promise.then(str.upper).listen(heard.append)
    promise.answer("yes")
    assert heard == ["YES"]


def test_a_function_that_raises_fails_the_promise() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    promise.then(int).listen(heard.append)
    promise.answer("no number")
    assert [type(each) for each in heard] == [ValueError]


def test_a_function_may_promise_the_answer() -> None:
    promise: Promise[str] = Promise()
    second: Promise[str] = Promise()
    heard: list[object] = []
    promise.then(lambda _: second).listen(heard.append)
    promise.answer("first")
    assert heard == []
    second.answer("second")
    assert heard == ["second"]


async def both(first: Any, second: Any) -> str:
    return str(await first) + str(await second)


def test_a_coroutine_that_need_not_wait_returns_at_once() -> None:
    assert run(both(succeed("a"), succeed("b"))) == "ab"


def test_a_coroutine_awaits_promises_and_deferreds_in_its_order() -> None:
    promise: Promise[str] = Promise()
    deferred: Deferred[str] = Deferred()
    heard: list[object] = []
    running = run(both(promise, deferred))
    assert isinstance(running, Promise)
    running.listen(heard.append)
    deferred.callback("b")
    assert heard == []
    promise.answer("a")
    assert heard == ["ab"]


def test_a_coroutine_passes_on_what_its_listener_wants_done() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    running = run(both(promise, succeed("b")))
    assert isinstance(running, Promise)
    running.listen(lambda answer: lambda: heard.append(answer))
    do = promise.answer("a")
    assert heard == []
    assert do is not None
    do()
    assert heard == ["ab"]


def test_the_listener_of_a_coroutine_that_a_deferred_ends_is_heard_out() -> None:
    deferred: Deferred[str] = Deferred()
    heard: list[object] = []
    running = run(both(succeed("a"), deferred))
    assert isinstance(running, Promise)
    running.listen(lambda answer: lambda: heard.append(answer))
    deferred.callback("b")
    assert heard == ["ab"]


@pytest.mark.parametrize("is_deferred", [False, True])
def test_a_failure_is_raised_where_it_is_awaited(is_deferred: bool) -> None:
    awaited: Any = Deferred() if is_deferred else Promise()

    async def caught() -> str:
        try:
            return str(await awaited)
        except ValueError as error:
            return f"caught {error}"

    heard: list[object] = []
    running: Any = run(caught())
    running.listen(heard.append)
    (awaited.errback if is_deferred else awaited.answer)(ValueError("a fault"))
    assert heard == ["caught a fault"]


def test_a_coroutine_that_raises_fails_its_promise() -> None:
    promise: Promise[str] = Promise()
    heard: list[object] = []
    running = run(both(promise, None))
    assert isinstance(running, Promise)
    running.listen(heard.append)
    promise.answer("a")
    assert [type(each) for each in heard] == [TypeError]
    with pytest.raises(TypeError):
        run(both(None, None))


def test_coroutines_run_side_by_side() -> None:
    promises: list[Promise[str]] = [Promise(), Promise()]
    heard: list[object] = []
    running: Any = run(together(both(each, succeed("!")) for each in promises))
    running.listen(heard.append)
    promises[1].answer("b")
    promises[0].answer("a")
    assert heard == [["a!", "b!"]]


def test_thousands_that_are_settled_already_are_awaited_without_recursion() -> None:
    promises: list[Promise[str]] = [Promise() for _ in range(5_000)]
    heard: list[Any] = []
    running: Any = run(together(settled(each) for each in promises))
    running.listen(heard.append)
    for promise in reversed(promises):
        promise.answer("yes")
    assert heard == [["yes"] * 5_000]


def test_twisted_awaits_a_deferred_of_a_promise() -> None:
    heard: list[Any] = []
    early: Promise[str] = Promise()
    late: Promise[str] = Promise()
    early.answer("early")
    Deferred.fromCoroutine(both(early.deferred(), late.deferred())).addCallback(heard.append)
    late.answer("late")
    assert heard == ["earlylate"]
    failed: Promise[str] = Promise()
    failed.deferred().addErrback(lambda failure: heard.append(failure.value))
    fault = ValueError("a fault")
    failed.answer(fault)
    assert heard == ["earlylate", fault]


def test_a_promise_that_twisted_awaits_without_a_deferred_fails_loudly() -> None:
    heard: list[Any] = []
    Deferred.fromCoroutine(both(Promise(), Promise())).addErrback(heard.append)
    assert heard[0].check(AssertionError)


def test_an_answer_is_settled_whatever_its_shape() -> None:
    promise: Promise[str] = Promise()
    promise.answer("promised")
    answers: list[Any] = ["at once", succeed("deferred"), promise]
    assert [run(settled(each)) for each in answers] == ["at once", "deferred", "promised"]
