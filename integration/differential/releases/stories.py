"""The stories of administrators, told to two releases at every version that both serve.

A broker of Apache Kafka applies a change a moment after the answer, so both are given the time to settle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack

from integration.differential.playing.pairs import Pair
from integration.differential.playing.player import Target
from integration.differential.playing.settling import Settling
from integration.differential.releases.causes import Found, without
from integration.differential.stories import telling
from integration.differential.stories.admin_talk import Admin, Story, Told
from integration.differential.stories.administrators import STORIES
from schemas.registry import VERSIONS


def told(pair: Pair, configs: Collection[str]) -> Iterator[tuple[str, list[Found]]]:
    """The differing answers of each story. configs: those that are known to differ."""
    old, new = pair.targets
    with ExitStack() as stack:
        old_release, new_release = (stack.enter_context(_Release(target)) for target in (old, new))
        for story in STORIES:
            for version in VERSIONS[story.api_key]:
                if version <= new.newest.get(story.api_key, -1):
                    first = new_release.heard(story, version)
                    second = old_release.heard(story, version, first)
                    yield f"{story.name} v{version}", _differing(second, first, version, configs)


class _Release:
    """One server, and the loop in which its changes settle."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._settling = Settling(target)
        self._runner = asyncio.Runner()

    def __enter__(self) -> _Release:
        return self

    def __exit__(self, *_: object) -> None:
        self._settling.close()
        self._runner.close()

    def heard(self, story: Story, version: int, expected: Sequence[Told] | None = None) -> Sequence[Told]:
        admin = Admin(self._target, story.name, version, expected, self._settle)
        return telling.told(story.tell, admin)

    def _settle(self) -> None:
        self._runner.run(self._settling.settle())


def _differing(
    old: Sequence[Told], new: Sequence[Told], version: int, configs: Collection[str]
) -> list[Found]:
    """The answers that differ."""
    both = (
        Found(
            one.request.partition("(")[0],
            version,
            without(one.answer, configs),
            without(other.answer, configs),
        )
        for one, other in zip(old, new, strict=True)
    )
    return [found for found in both if found.old != found.new]
