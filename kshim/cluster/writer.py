"""Makes the changes of a cluster durable, one after the other.

Every change runs under one lock: it looks at what is there, decides, makes the decision durable, and only
then changes what clients see. So two creations of one name cannot both succeed, a deletion cannot be undone
by a change that was on its way, and nobody is told of a topic that a crash could take back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kshim.cluster.keys import METADATA_OFFSET

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

Changes = dict[bytes, bytes | None]
"""New values by key; None deletes one."""


class Writer:
    """The one writer of what the cluster keeps."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._waiting: deque[tuple[Callable[[], Any], Deferred[Any]]] = deque()
        self._is_changing = False
        self.offset = 0  # how many changes are durable, in the whole life of the cluster
        self.version = 0  # rises whenever clients may see something else of the cluster than before
        self.leader_epoch = 0  # rises with each start, and whenever another broker is the controller

    def start(self) -> None:
        """Go on where the last process ended."""
        offset, epoch = (self._metadata.get(METADATA_OFFSET) or b"0 0").split()
        self.offset, self.leader_epoch = int(offset), int(epoch) + 1

    def run(self, change: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Call `change(*arguments)` when no other change is under way; fires with its result."""
        done: Deferred[Any] = Deferred()
        self._waiting.append((partial(change, *arguments), done))
        if not self._is_changing:
            Deferred.fromCoroutine(self._change())
        return done

    async def _change(self) -> None:
        """Make the changes that wait. A loop: changes without effect end at once, and there may be many."""
        self._is_changing = True
        while self._waiting:
            change, done = self._waiting.popleft()
            try:
                result = await maybeDeferred(change)
            except Exception:
                done.errback(Failure())
            else:
                done.callback(result)
        self._is_changing = False

    async def put(self, changes: Changes) -> None:
        """Make a change durable, and count it. Raises StorageError."""
        offset = self.offset + 1
        await self._metadata.put(changes | {METADATA_OFFSET: b"%d %d" % (offset, self.leader_epoch)})
        self.offset = offset
        self.version += 1
