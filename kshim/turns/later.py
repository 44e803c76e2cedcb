"""A response now or later: an api function may return a message or a Deferred of one, and these take both.

What is journaled is answered later, as the most frequent requests are. These wait for a `Promise`, which
costs a third of a Deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.python.failure import Failure

from kshim.storage.interfaces import StorageError
from kshim.turns.promise import Promise

T = TypeVar("T")
R = TypeVar("R")

Later: TypeAlias = T | Deferred[T]
"""A value, or a Deferred of it."""


_CLASSES = frozenset({Deferred, DeferredList})
"""Of answers that come later. isinstance() takes five times as long, as Deferred is an abstract class."""


def deferred(promise: Promise[T]) -> Deferred[T]:
    """A Deferred of a promise's answer, for those who chain further functions to it."""
    deferred: Deferred[T] = Deferred()
    promise.listen(deferred.callback)
    return deferred


def then(answer: Later[T], function: Callable[[T], Later[R]]) -> Later[R]:
    """`function(answer)`, as soon as there is an answer; `function` may return a Deferred as well."""
    if answer.__class__ in _CLASSES:
        return answer.addCallback(function)  # type: ignore[union-attr]
    return function(answer)  # type: ignore[arg-type]


def gather(answers: Sequence[Later[T]], function: Callable[[list[T]], R]) -> Later[R]:
    """`function(answers)`, in their order, as soon as the last one has come."""
    if len(answers) == 1:
        return then(answers[0], lambda answer: function([answer]))
    found: list[Any] = list(answers)
    if not any(answer.__class__ in _CLASSES for answer in found):
        return function(found)
    pending: list[Deferred[Any]] = []
    for answer in found:
        if answer.__class__ in _CLASSES:
            pending.append(answer)
        else:
            known: Deferred[Any] = Deferred()
            known.callback(answer)
            pending.append(known)
    return gatherResults(pending, consumeErrors=True).addCallback(function)


def if_not_stored(answer: Callable[[], R]) -> Callable[[Failure], R]:
    """An errback that returns `answer()` if a write failed. Any other failure is our own fault and passes
    through.
    """

    def errback(failure: Failure) -> R:
        failure.trap(StorageError)
        return answer()

    return errback
