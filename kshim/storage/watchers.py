"""Who waits for the high watermark of which partition."""

from collections.abc import Callable, Iterable

from twisted.logger import Logger

log = Logger()


class Watchers:
    """Callbacks by partition_no. Those that come or go while being called are no trouble."""

    def __init__(self) -> None:
        self._callbacks: dict[int, dict[object, Callable[[], None]]] = {}

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Add a callback; the function returned removes it, and may be called more than once."""
        handle = object()
        self._callbacks.setdefault(partition_no, {})[handle] = callback

        def unwatch() -> None:
            callbacks = self._callbacks.get(partition_no, {})
            callbacks.pop(handle, None)
            if not callbacks:
                self._callbacks.pop(partition_no, None)

        return unwatch

    def notify(self, partition_nos: Iterable[int]) -> None:
        """Call what watches these partitions; one that raises is logged and does not stop the others."""
        for partition_no in partition_nos:
            callbacks = self._callbacks.get(partition_no)
            if not callbacks:
                continue
            for handle, callback in list(callbacks.items()):
                if handle not in callbacks:
                    continue
                try:
                    callback()
                except Exception:
                    log.failure("a watcher of partition {partition_no} failed", partition_no=partition_no)
