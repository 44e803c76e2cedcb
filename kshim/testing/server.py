"""A server for one test or many: a process of its own, on free ports, ended at the end of the block.

with serving(brokers=3) as kshim:
    producer = KafkaProducer(bootstrap_servers=kshim.bootstrap)
    ...
    kshim.stop_broker(1)
    kshim.wait_for_assignment("readers", members=2)

`async with serving() as kshim` gives the same with coroutines: `await kshim.wait_stable("readers")`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kshim.testing.arguments import checked, waiting
from kshim.testing.initial import GivenRecords, GivenTopics
from kshim.testing.loops import in_thread
from kshim.testing.running import Kshim, NotStarted

if TYPE_CHECKING:
    from kshim.testing.asynchronous import AsyncKshim

__all__ = ["Kshim", "NotStarted", "serving"]


class serving:  # noqa: N801 (it is used as a function, as open is)
    """A server with a temporary directory, which is removed at the end. Raises NotStarted.

    properties: those that `kshim config` lists, as in {"num.partitions": "3"}. tls: True for a second
    listener with TLS (see `Kshim.tls`), or the names of the clients that get certificates. users: passwords
    by name, for clients that authenticate (SASL) at `Kshim.sasl_bootstrap`. topics, records: what the server
    begins with, and has again after a `reset`, as in {"orders": 3} and {"orders": ["first"]}.
    """

    @checked
    def __init__(
        self,
        brokers: int = 1,
        properties: Mapping[str, str] | None = None,
        *,
        tls: bool | Sequence[str] = False,
        users: Mapping[str, str] | None = None,
        topics: GivenTopics | None = None,
        records: GivenRecords | None = None,
    ) -> None:
        self._brokers, self._properties, self._tls, self._users = brokers, properties or {}, tls, users
        self._topics, self._records = topics, records
        self._open = ExitStack()

    @waiting
    def __enter__(self) -> Kshim:
        with ExitStack() as opening:
            directory = opening.enter_context(tempfile.TemporaryDirectory(prefix="kshim-"))
            kshim = Kshim(Path(directory), self._brokers, self._properties, self._tls, self._users)
            opening.callback(kshim.close)
            kshim.start()
            kshim.begin_with(self._topics, self._records)
            self._open = opening.pop_all()
        return kshim

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._open.close()

    async def __aenter__(self) -> AsyncKshim:
        from kshim.testing.asynchronous import AsyncKshim

        return AsyncKshim(await in_thread(self.__enter__))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await in_thread(self._open.close)
