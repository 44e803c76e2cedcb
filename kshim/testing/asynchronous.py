"""`Kshim` with coroutines. Each call runs in a thread, so the event loop goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

from kshim.testing.faults import AsyncFault
from kshim.testing.loops import in_thread
from kshim.testing.quotas import AsyncQuota
from kshim.testing.running import Kshim

if TYPE_CHECKING:
    from kshim.testing.tls import Tls

__all__ = ["AsyncKshim"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Later: TypeAlias = Coroutine[object, object, T]


def _twin(
    method: Callable[Concatenate[Kshim, P], T],
) -> Callable[Concatenate[AsyncKshim, P], Later[T]]:
    """The method as a coroutine of AsyncKshim, with the same arguments and docstring."""

    async def twin(self: AsyncKshim, /, *args: P.args, **kwargs: P.kwargs) -> T:
        call: Callable[P, T] = getattr(self.sync, method.__name__)
        return await in_thread(call, *args, **kwargs)

    twin.__doc__, twin.__name__ = method.__doc__, method.__name__
    return twin


def _asynchronous(
    method: Callable[Concatenate[AsyncKshim, P], Later[T]], wrap: Callable[[T], R]
) -> Callable[Concatenate[AsyncKshim, P], Later[R]]:
    """The coroutine with its result wrapped in a class that has coroutines, too."""

    async def twin(self: AsyncKshim, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return wrap(await method(self, *args, **kwargs))

    twin.__doc__, twin.__name__ = method.__doc__, method.__name__
    return twin


class AsyncKshim:
    """A running server, for coroutines of asyncio, also through anyio, and of trio.

    `sync` is the same server as a `Kshim`, for threads that may wait.
    """

    def __init__(self, kshim: Kshim) -> None:
        self.sync = kshim
        self.name, self.group = kshim.name, kshim.group
        self.consumer_settings = kshim.consumer_settings

    @property
    def bootstrap(self) -> str:
        """The addresses of its brokers, comma-separated, as clients take them."""
        return self.sync.bootstrap

    @property
    def tls(self) -> Tls:
        """The settings for clients that connect with TLS. The server must have been started with tls=True."""
        return self.sync.tls

    @property
    def sasl_bootstrap(self) -> str:
        """The addresses where `users` authenticate, with PLAIN or SCRAM; empty without users."""
        return self.sync.sasl_bootstrap

    @property
    def log(self) -> str:
        """The server's log so far."""
        return self.sync.log

    topic = _twin(Kshim.topic)
    topics = _twin(Kshim.topics)
    create_topic = _twin(Kshim.create_topic)
    delete_topics = _twin(Kshim.delete_topics)
    begin_with = _twin(Kshim.begin_with)

    produce = _twin(Kshim.produce)
    consume = _twin(Kshim.consume)
    end_offsets = _twin(Kshim.end_offsets)

    groups = _twin(Kshim.groups)
    describe_group = _twin(Kshim.describe_group)
    offsets = _twin(Kshim.offsets)
    wait_stable = _twin(Kshim.wait_stable)
    wait_for_assignment = _twin(Kshim.wait_for_assignment)
    wait_empty = _twin(Kshim.wait_empty)
    wait_caught_up = _twin(Kshim.wait_caught_up)

    reset = _twin(Kshim.reset)

    start = _twin(Kshim.start)
    stop = _twin(Kshim.stop)
    kill = _twin(Kshim.kill)
    describe = _twin(Kshim.describe)
    move_leader = _twin(Kshim.move_leader)
    move_coordinator = _twin(Kshim.move_coordinator)
    stop_broker = _twin(Kshim.stop_broker)
    start_broker = _twin(Kshim.start_broker)

    add_user = _twin(Kshim.add_user)
    remove_user = _twin(Kshim.remove_user)
    rebalances = _twin(Kshim.rebalances)
    wait_for_rebalance = _twin(Kshim.wait_for_rebalance)
    rebalance = _twin(Kshim.rebalance)
    expire = _twin(Kshim.expire)
    fence = _twin(Kshim.fence)
    remove = _twin(Kshim.remove)
    empty_group = _twin(Kshim.empty_group)
    delete_group = _twin(Kshim.delete_group)
    set_offsets = _twin(Kshim.set_offsets)
    reset_offsets = _twin(Kshim.reset_offsets)
    fault = _asynchronous(_twin(Kshim.fault), AsyncFault)
    quota = _asynchronous(_twin(Kshim.quota), AsyncQuota)

    now = _twin(Kshim.now)
    advance = _twin(Kshim.advance)

    @asynccontextmanager
    async def hold_time(self) -> AsyncIterator[None]:
        """Stop the server's time within the block: no session and no transaction times out."""
        held = await in_thread(self.sync.hold_time)
        await in_thread(held.__enter__)
        try:
            yield
        finally:
            await in_thread(held.__exit__, None, None, None)
