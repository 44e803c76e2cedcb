"""Asks the other kshim processes over their HTTP interfaces, on another thread: see `control.others`.

Each process says in the processes' group where its HTTP interface is. The token is this process's own:
processes that share groups have the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twisted.internet.defer import CancelledError, Deferred, TimeoutError, fail
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from kshim.client.faults import ClientError
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.control.others import NotAnswered, Page
from kshim.upstream.fellows import Fellow
from kshim.upstream.interfaces import GroupShards

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor

ANSWER_S: Final = 3.0
"""How long a process may take to answer; then it counts as silent."""
SILENT_S: Final = 5.0
"""How long a process that was silent is not asked again: people look again and again."""
MOST_BYTES: Final = 32 * 1024 * 1024
T = TypeVar("T")


class OtherKshim:
    """Implements `kshim.control.others.Others`."""

    def __init__(
        self, reactor: Reactor, config: Config, shards: GroupShards, shard_for: Callable[[str], int]
    ) -> None:
        """shard_for: returns a group's shard."""
        self._reactor = reactor
        self._shards = shards
        self._shard_for = shard_for
        self._token = config.http_token
        at = config.http_listener
        self._ours = at if at is not None and at.port else None
        """Where the HTTP interface of this process is; None if it has none, or no port yet."""
        self._silent: dict[str, tuple[float, str]] = {}
        """Until when a process is not asked, and why."""

    def http_opened(self, at: Endpoint) -> None:
        """Note where the HTTP interface of this process listens, and tell the others if that is news."""
        if at != self._ours:
            self._ours = at
            self._shards.tell()

    def our_http(self) -> Endpoint | None:
        """Return where the others find the HTTP interface of this process; None if it has none."""
        at = self._ours
        if at is None or not at.is_nowhere:
            return at
        host = next(iter(self._shards.here().addresses.values())).host
        return Endpoint(host, at.port)

    def all(self) -> Sequence[str]:
        """See `Others.all`."""
        return [_at(each) for each in self._fellows()]

    def leader(self, group_id: str) -> str | None:
        """See `Others.leader`."""
        leader = self._shards.leader(self._shard_for(group_id))
        return None if leader is None or leader.node_id == self._shards.here().node_id else _at(leader)

    def run(self, other: str, command: str, *arguments: object) -> Deferred[Any]:
        """See `Others.run`."""
        from kshim.client.http_commands import run_over_http

        return self._asked(other, lambda at: run_over_http(at, self._token, command, arguments, **_LIMITS))

    def field(self, other: str, target: str, name: str) -> Deferred[Any]:
        """See `Others.field`."""
        from kshim.client.http_commands import fetch, value_of

        return self._asked(other, lambda at: value_of(at, fetch(at, self._token, target, **_LIMITS), name))

    def page(self, other: str, target: str) -> Deferred[Page]:
        """See `Others.page`."""
        from kshim.client.http_commands import fetch

        return self._asked(other, lambda at: Page(*fetch(at, self._token, target, **_LIMITS)))

    def _fellows(self) -> list[Fellow]:
        here = self._shards.here().node_id
        return [each for each in self._shards.fellows() if each.node_id != here]

    def _asked(self, other: str, ask: Callable[[Endpoint], T]) -> Deferred[T]:
        """Ask on another thread. Errbacks NotAnswered."""
        try:
            at = self._http(other)
        except NotAnswered as error:
            return fail(error)
        until_s, why = self._silent.get(other, (0.0, ""))
        if self._reactor.seconds() < until_s:
            return fail(NotAnswered(why))
        reactor: Any = self._reactor
        answer = deferToThreadPool(reactor, reactor.getThreadPool(), ask, at)
        answer.addTimeout(ANSWER_S, reactor)
        return answer.addErrback(partial(self._failed, other))

    def _failed(self, other: str, failure: Failure) -> Failure:
        failure.trap(ClientError, TimeoutError, CancelledError)
        is_late = failure.check(ClientError) is None
        why = f"does not answer: {f'it takes more than {ANSWER_S:g} s' if is_late else failure.value}"
        self._silent[other] = (self._reactor.seconds() + SILENT_S, why)
        return Failure(NotAnswered(why))

    def _http(self, other: str) -> Endpoint:
        """Return where a process's HTTP interface is. Raises NotAnswered."""
        fellow = next((each for each in self._fellows() if _at(each) == other), None)
        if fellow is None:
            raise NotAnswered("is gone")
        if fellow.http is None:
            raise NotAnswered("says of no HTTP interface: start it with --http HOST:PORT (http.listener)")
        if fellow.http.is_loopback and not _are_neighbours(fellow, self._shards.here()):
            raise NotAnswered(f"serves HTTP to its own machine alone, at {fellow.http} (http.listener)")
        return fellow.http


_LIMITS: Any = {"answer_s": ANSWER_S, "most_bytes": MOST_BYTES}


def _at(fellow: Fellow) -> str:
    return str(next(iter(fellow.addresses.values())))


def _are_neighbours(one: Fellow, other: Fellow) -> bool:
    """True if two processes are on one machine, as far as their addresses show."""
    return bool(_machine(one) & _machine(other))


def _machine(fellow: Fellow) -> set[str]:
    return {"loopback" if at.is_loopback else at.host for at in fellow.addresses.values()}
