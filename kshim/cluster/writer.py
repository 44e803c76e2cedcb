"""Makes the changes of a cluster durable, one after the other.

Every change runs under one lock: it reads the current state, decides, makes the decision durable, and only
then changes the state that clients see. So two creations of one name cannot both succeed, an earlier change
cannot undo a deletion, and no client sees a topic that a crash could take back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.cluster.keys import METADATA_OFFSET

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

P = ParamSpec("P")
R = TypeVar("R")

Changes = dict[bytes, bytes | None]
"""New values by key; None deletes the key."""


class Writer:
    """The only writer of the cluster's metadata."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._waiting: deque[Callable[[], Awaitable[None]]] = deque()
        self._is_changing = False
        self.offset = 0  # how many changes are durable, in the whole life of the cluster
        self.version = 0  # grows with each change that clients may see
        self.leader_epoch = 0  # grows with each start, and whenever another broker becomes the controller

    def start(self) -> None:
        """Read the offset and the leader epoch of the last process, and begin a new epoch."""
        offset, epoch = (self._metadata.get(METADATA_OFFSET) or b"0 0").split()
        self.offset, self.leader_epoch = int(offset), int(epoch) + 1

    def run(self, change: Callable[P, Awaitable[R]], *arguments: P.args, **named: P.kwargs) -> Deferred[R]:
        """Call `change(*arguments)` when no other change is under way; fires with its result."""
        done: Deferred[R] = Deferred()

        async def make() -> None:
            try:
                result = await change(*arguments, **named)
            except Exception:
                done.errback(Failure())
            else:
                done.callback(result)

        self._waiting.append(make)
        if not self._is_changing:
            Deferred.fromCoroutine(self._change())
        return done

    async def _change(self) -> None:
        """Make all waiting changes. It is a loop, not a recursion: a change without effect ends at once, and
        thousands of them may wait.
        """
        self._is_changing = True
        while self._waiting:
            await self._waiting.popleft()()
        self._is_changing = False

    async def put(self, changes: Changes) -> None:
        """Make a change durable, and count it. Raises StorageError."""
        offset = self.offset + 1
        await self._metadata.put(changes | {METADATA_OFFSET: b"%d %d" % (offset, self.leader_epoch)})
        self.offset = offset
        self.version += 1
