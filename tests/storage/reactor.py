"""A reactor for tests of storage: what other threads call is kept until the test lets it run."""

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

PATIENCE_S = 30


class Reactor:
    """As much of IReactorFromThreads as the store needs."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:
        self._calls.put((function, args))

    def turn(self) -> None:
        """Run the next call; wait for it if there is none."""
        function, args = self._calls.get(timeout=PATIENCE_S)
        function(*args)

    def wait(self, *deferreds: Deferred[Any]) -> list[Any]:
        """Turn until all have fired. Failures are in the list as their exceptions."""
        results: dict[int, Any] = {}
        for index, deferred in enumerate(deferreds):
            deferred.addBoth(lambda result, index=index: results.__setitem__(index, result))
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
