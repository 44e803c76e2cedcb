"""A response now or later: an api function may return a message or a Deferred of one, and these take both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.python.failure import Failure

from kshim.storage.interfaces import StorageError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
R = TypeVar("R")

Later: TypeAlias = T | Deferred[T]
"""A value, or a Deferred of it."""


_CLASSES = frozenset({Deferred, DeferredList})


def is_deferred(answer: Later[T]) -> TypeIs[Deferred[T]]:
    """Whether an answer comes later. isinstance() takes five times as long: Deferred is an abstract class."""
    return answer.__class__ in _CLASSES


def then(answer: Later[T], function: Callable[[T], Later[R]]) -> Later[R]:
    """`function(answer)`, as soon as there is an answer; `function` may return a Deferred as well."""
    if is_deferred(answer):
        return answer.addCallback(function)
    return function(answer)


def together(answers: list[Later[T]]) -> Later[list[T]]:
    """All answers, in their order, as soon as the last one has come."""
    for answer in answers:
        if is_deferred(answer):
            return gather(answers, list)
    return answers  # type: ignore[return-value]


def gather(answers: Sequence[Later[T]], function: Callable[[list[T]], R]) -> Later[R]:
    """`function(answers)`, in their order, as soon as the last one has come."""
    if len(answers) == 1:
        return then(answers[0], lambda answer: function([answer]))
    if not any(is_deferred(answer) for answer in answers):
        return function([answer for answer in answers if not is_deferred(answer)])
    pending: list[Deferred[Any]] = []
    for answer in answers:
        if is_deferred(answer):
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
        failure.trap(StorageError)  # type: ignore[no-untyped-call]
        return answer()

    return errback
