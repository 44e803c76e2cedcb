"""A response now or later: api functions return a message or a Deferred of one, and these join the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, gatherResults
from twisted.python.failure import Failure

from kshim.storage.interfaces import StorageError

T = TypeVar("T")
R = TypeVar("R")

Later: TypeAlias = T | Deferred[T]
"""A response that is here, or comes."""


def then(answer: Later[T], function: Callable[[T], Later[R]]) -> Later[R]:
    """`function` of the answer, as soon as there is one. It may give an answer that comes later still."""
    if isinstance(answer, Deferred):
        return answer.addCallback(function)
    return function(answer)


def gather(answers: Sequence[Later[T]], function: Callable[[list[T]], R]) -> Later[R]:
    """`function` of all answers, in their order, as soon as there are all."""
    if len(answers) == 1:
        return then(answers[0], lambda answer: function([answer]))
    if not any(isinstance(answer, Deferred) for answer in answers):
        return function([answer for answer in answers if not isinstance(answer, Deferred)])
    pending: list[Deferred[Any]] = []
    for answer in answers:
        if isinstance(answer, Deferred):
            pending.append(answer)
        else:
            known: Deferred[Any] = Deferred()
            known.callback(answer)
            pending.append(known)
    return gatherResults(pending, consumeErrors=True).addCallback(function)


def if_not_stored(answer: Callable[[], R]) -> Callable[[Failure], R]:
    """An errback: the answer where a write failed. Any other failure is our own fault and goes on."""

    def errback(failure: Failure) -> R:
        failure.trap(StorageError)  # type: ignore[no-untyped-call]
        return answer()

    return errback
