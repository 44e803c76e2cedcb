"""A reactor for tests of storage: it keeps calls from other threads until the test runs them."""

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

PATIENCE_S = 30


class Reactor:
    """The part of IReactorFromThreads that the store needs."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._changed = Condition()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:  # noqa: N802
        with self._changed:
            self._calls.append((function, args))
            self._changed.notify()

    @property
    def has_calls(self) -> bool:
        """True if a call from another thread waits."""
        with self._changed:
            return bool(self._calls)

    def await_call(self) -> None:
        """Wait until a call from another thread is there, and do not run it yet."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._calls, PATIENCE_S), "nothing happens"

    def turn(self) -> None:
        """Run the next call; wait for one if there is none."""
        self.await_call()
        function, args = self._calls.popleft()
        function(*args)

    def wait(self, *deferreds: Deferred[Any]) -> list[Any]:
        """Turn until all have fired; a failure is in the list as its exception."""
        results: dict[int, Any] = {}
        for index, deferred in enumerate(deferreds):
            deferred.addBoth(partial(results.__setitem__, index))
        while len(results) < len(deferreds):
            self.turn()
        found = [results[index] for index in range(len(deferreds))]
        return [result.value if isinstance(result, Failure) else result for result in found]

    def result(self, deferred: Deferred[Any]) -> Any:
        """Turn until it has fired. Raises its failure."""
        (result,) = self.wait(deferred)
        if isinstance(result, BaseException):
            raise result
        return result
