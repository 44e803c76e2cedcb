"""Callbacks for changes of a partition, such as a new high watermark."""

from collections.abc import Callable, Iterable

from twisted.logger import Logger

log = Logger()


class Watchers:
    """Callbacks by partition_no. A callback may add and remove callbacks while it is called."""

    def __init__(self) -> None:
        self._callbacks: dict[int, dict[object, Callable[[], None]]] = {}

    def watch(self, partition_no: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Add a callback; the returned function removes it, and may be called more than once."""
        handle = object()
        self._callbacks.setdefault(partition_no, {})[handle] = callback

        def unwatch() -> None:
            callbacks = self._callbacks.get(partition_no, {})
            callbacks.pop(handle, None)
            if not callbacks:
                self._callbacks.pop(partition_no, None)

        return unwatch

    def notify(self, partition_nos: Iterable[int]) -> None:
        """Call the callbacks of these partitions. If one raises, that is logged and the others are called."""
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
