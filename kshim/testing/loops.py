"""Keeps calls that wait out of event loops: those of asyncio, and of trio.

A call that blocks the loop stops the code under test, which may be what the call waits for.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar, cast

__all__ = ["in_thread", "refuse_to_block"]

P = ParamSpec("P")
T = TypeVar("T")


def refuse_to_block(name: str) -> None:
    """Raise RuntimeError if an event loop runs in this thread. name: the call that would block it."""
    if not (_in_asyncio() or _in_trio()):
        return
    meant = (
        "write `async with serving(…)`"
        if name in ("__enter__", "__init__")
        else f"write `await async_kshim.{name}(…)`, with the fixture async_kshim or `async with serving()`"
    )
    raise RuntimeError(f"{name}() would block the event loop that runs in this thread: {meant}")


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call that waits in a thread, from a coroutine of asyncio or trio."""
    if _in_trio():
        done = await sys.modules["trio"].to_thread.run_sync(partial(call, *args, **kwargs))
        return cast(T, done)
    return await asyncio.to_thread(call, *args, **kwargs)


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()
