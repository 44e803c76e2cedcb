"""Shrinks a history in which two servers differ to the few lines that matter.

A line, or one option or argument of a line, is a *part*. Many candidates, each without some parts, are played
at a time. Parts that can be left out one by one can mostly be left out together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from integration.differential.invented import Invented, Said

Differs = Callable[[Invented], Awaitable[bool]]
Part = tuple[int, str | int]
"""A line's number, and an option's name or an argument's position; "" stands for the whole line."""
MAY_HAVE_TO_WAIT = {"join", "rejoin", "sync"}


async def shrink(invented: Invented, differs: Differs) -> Invented:
    """The smallest history found that still `differs`."""
    size = max(len(invented.said) // 2, 1)
    while size:
        lines: list[Part] = [(number, "") for number in range(len(invented.said))]
        chunks = [lines[at : at + size] for at in range(0, len(lines), size)]
        smaller = await _without_some(invented, chunks, differs)
        size = size // 2 if smaller is invented else min(size, len(smaller.said) // 2 or 1)
        invented = smaller
    return await _without_some(invented, [[part] for part in _options(invented)], differs)


def _options(invented: Invented) -> list[Part]:
    """All options and arguments, except each first argument, which is mostly the client."""
    return [
        (number, part)
        for number, said in enumerate(invented.said)
        for part in (*range(1, len(said.args)), *dict(said.options))
        if part != "wait" or said.verb not in MAY_HAVE_TO_WAIT
    ]


async def _without_some(invented: Invented, chunks: Sequence[Sequence[Part]], differs: Differs) -> Invented:
    """The history without as many chunks as can be left out together."""
    verdicts = await asyncio.gather(*(differs(_without(invented, chunk)) for chunk in chunks))
    idle = [chunk for chunk, still in zip(chunks, verdicts, strict=True) if still]
    while idle:
        candidate = _without(invented, [part for chunk in idle for part in chunk])
        if len(idle) == 1 or await differs(candidate):
            return candidate
        idle = idle[: len(idle) // 2]
    return invented


def _without(invented: Invented, parts: Collection[Part]) -> Invented:
    said = tuple(
        _with_less(said, {part for line, part in parts if line == number})
        for number, said in enumerate(invented.said)
        if (number, "") not in parts
    )
    return replace(invented, said=said)


def _with_less(said: Said, parts: Collection[str | int]) -> Said:
    args = tuple(arg for number, arg in enumerate(said.args) if number not in parts)
    return replace(said, args=args, options=tuple(each for each in said.options if each[0] not in parts))
