"""A reactor for tests of storage: what other threads call is kept until the test lets it run."""

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

PATIENCE_S = 30


class Reactor:
    """As much of IReactorFromThreads as the store needs."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._changed = Condition()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:  # noqa: N802
        with self._changed:
            self._calls.append((function, args))
            self._changed.notify()

    @property
    def has_calls(self) -> bool:
        """Whether another thread has something to tell."""
        with self._changed:
            return bool(self._calls)

    def await_call(self) -> None:
        """Wait until another thread has something to tell, and do not listen yet."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._calls, PATIENCE_S), "nothing happens"

    def turn(self) -> None:
        """Run the next call; wait for it if there is none."""
        self.await_call()
        function, args = self._calls.popleft()
        function(*args)

    def wait(self, *deferreds: Deferred[Any]) -> list[Any]:
        """Turn until all have fired. Failures are in the list as their exceptions."""
        results: dict[int, Any] = {}
        for index, deferred in enumerate(deferreds):
            deferred.addBoth(partial(results.__setitem__, index))
        while len(results) < len(deferreds):
            self.turn()
        found = [results[index] for index in range(len(deferreds))]
        return [result.value if isinstance(result, Failure) else result for result in found]

    def result(self, deferred: Deferred[Any]) -> Any:
        """Turn until it has fired. Raises what it failed with."""
        (result,) = self.wait(deferred)
        if isinstance(result, BaseException):
            raise result
        return result
