"""A response now or later: an api function may return a message or a Deferred of one, and these take both.

What is journaled is answered later, as the most frequent requests are. These wait for a `Promise`, which
costs a third of a Deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.python.failure import Failure

from kshim.storage.interfaces import StorageError
from schemas.pieces import Pieces

T = TypeVar("T")
R = TypeVar("R")

Later: TypeAlias = T | Deferred[T]
"""A value, or a Deferred of it."""


_CLASSES = frozenset({Deferred, DeferredList})
"""Of answers that come later. isinstance() takes five times as long, as Deferred is an abstract class."""


Afterwards: TypeAlias = dict[Callable[[], object], None]
"""What is to be done, once each and in this order, when all answers of one moment have been given."""


class Promise(Generic[T]):
    """An answer that comes later, never fails, and goes to one listener. It is not None."""

    __slots__ = ("_answer", "_arguments", "_listener")

    def __init__(self) -> None:
        self._answer: T | None = None
        self._listener: Callable[..., object] | None = None

    def listen(self, listener: Callable[..., object], *arguments: object) -> None:
        """Have `listener(answer, afterwards, *arguments)` called; at once, if the answer has come already.

        afterwards: takes what the listener wants to do when the other answers of that moment are given, too.
        """
        self._listener, self._arguments = listener, arguments
        if self._answer is not None:
            at_once: Afterwards = {}
            listener(self._answer, at_once, *arguments)
            do_all(at_once)

    def answer(self, answer: T, afterwards: Afterwards) -> None:
        """Give the answer. Then do all of `afterwards`."""
        if self._listener is None:
            self._answer = answer
        else:
            self._listener(answer, afterwards, *self._arguments)

    def deferred(self) -> Deferred[T]:
        """A Deferred of the answer, for those who chain further functions to it."""
        deferred: Deferred[T] = Deferred()
        self.listen(lambda answer, _: deferred.callback(answer))
        return deferred


class Promised(NamedTuple):
    """A reply that comes later."""

    promise: Promise[object]
    """Of the response."""
    encode: Callable[[Any], Later[bytes | Pieces | None]]
    """Makes the reply of the response. Raises Refused."""


def do_all(afterwards: Afterwards) -> None:
    """Do what was put off until all answers were given."""
    for do in afterwards:
        do()


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
