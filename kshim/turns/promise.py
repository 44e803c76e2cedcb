"""An answer that comes later is a promise with one listener, or a coroutine.

The most frequent requests wait for a `Promise`, which costs a few function calls. All others that wait are
coroutines, which `run` drives. A coroutine awaits promises, other coroutines, and the Deferreds of what works
on other threads or belongs to Twisted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")
R = TypeVar("R")

Afterwards: TypeAlias = Callable[[], object] | None
"""What a listener wants done once all answers of the moment are given; what is equal is done once."""
_NOT_YET: Final = object()


class Promise(Generic[T]):
    """An answer that comes later, and goes to one listener. If an exception comes instead, the promise has
    failed.
    """

    # Defaults of the class, not of an __init__: one is made for each commit.
    _answer: object = _NOT_YET
    _arguments: tuple[object, ...] = ()
    _function: Callable[[Any], object] | None = None
    _listener: Callable[..., Afterwards] | None = None

    def then(self, function: Callable[[Any], R | Promise[R]]) -> Promise[R]:
        """Make this the promise of `function(answer)`; it fails if `function` raises. If this promise fails,
        `function` is called with the exception.
        """
        assert self._function is None, "one function is enough"
        self._function = function
        return cast("Promise[R]", self)

    def listen(self, listener: Callable[..., Afterwards], *arguments: object) -> None:
        """Have `listener(answer, *arguments)` called; at once, if the answer has come already."""
        self._listener, self._arguments = listener, arguments
        if self._answer is not _NOT_YET:
            self.answer_alone(self._answer)

    def answer(self, answer: object) -> Afterwards:
        """Give the answer, or the exception that comes instead. The caller does what this returns when it has
        given all answers of the moment.
        """
        if self._listener is None:
            self._answer = answer
            return None
        if self._function is not None:
            try:
                answer = self._function(answer)
            except Exception as error:
                answer = error
            if isinstance(answer, Promise):
                answer.listen(self._listener, *self._arguments)
                return None
        return self._listener(answer, *self._arguments)

    def answer_alone(self, answer: object) -> None:
        """Give the only answer of the moment."""
        if (do := self.answer(answer)) is not None:
            do()

    def deferred(self) -> Deferred[T]:
        """A Deferred of the answer, for a coroutine that Twisted runs."""
        deferred: Deferred[T] = Deferred()

        def answered(answer: T | Exception) -> None:
            if isinstance(answer, Exception):
                deferred.errback(answer)
            else:
                deferred.callback(answer)

        self.listen(answered)
        return deferred

    def __await__(self) -> Generator[Promise[T], object, T]:
        answer = self._answer
        if answer is _NOT_YET or self._function is not None:
            answer = yield self
        elif isinstance(answer, Exception):
            raise answer
        assert answer is not self, "a coroutine that Twisted runs awaits `deferred()`"
        return cast(T, answer)


Answer: TypeAlias = T | Promise[T]
"""An answer, or the promise of one."""
Awaited: TypeAlias = Promise[Any] | Deferred[Any]
"""What a coroutine may wait for."""
Runnable: TypeAlias = Coroutine[Awaited, object, T]
"""A coroutine that `run` can run."""


class _Running(Promise[T]):
    """The promise of a coroutine's result."""

    def __init__(self, coroutine: Runnable[T], awaited: Awaited) -> None:
        self._coroutine = coroutine
        if isinstance(awaited, Promise):
            awaited.listen(self._go_on)
        else:
            awaited.addCallbacks(self._fired, self._failed)

    def _go_on(self, came: object) -> Afterwards:
        answer: object
        try:
            if isinstance(came, Exception):
                awaited = self._coroutine.throw(came)
            else:
                awaited = self._coroutine.send(came)
        except StopIteration as done:
            answer = done.value
        except Exception as error:
            answer = error
        else:
            if isinstance(awaited, Promise):
                awaited.listen(self._go_on)
            else:
                awaited.addCallbacks(self._fired, self._failed)
            return None
        return self.answer(answer)

    def _fired(self, result: object) -> None:
        if (do := self._go_on(None)) is not None:
            do()

    def _failed(self, failure: Failure) -> None:
        if (do := self._go_on(failure.value)) is not None:
            do()


def run(coroutine: Runnable[T]) -> Answer[T]:
    """Run a coroutine. Return its result, or the promise of it if the coroutine waits.

    Raises what the coroutine raises before it waits.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    return _Running(coroutine, awaited)


async def settled(answer: T | Awaitable[T]) -> T:
    """Return an answer that may have to be awaited."""
    if hasattr(answer, "__await__"):  # isinstance() takes three times as long, as Awaitable is abstract
        return await answer
    return answer


async def together(coroutines: Iterable[Runnable[T]]) -> list[T]:
    """Run coroutines side by side, and return their results in order."""
    answers = [run(each) for each in coroutines]
    return [await settled(each) for each in answers]
