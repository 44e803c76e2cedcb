"""Apache Kafka and kshim answer administrators in the same way, at every version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.differential.playing.pairs import Pair
from integration.differential.stories.admin_talk import Admin, Story, Told
from integration.differential.stories.administrators import STORIES
from integration.support.server import Server
from schemas.registry import VERSIONS


@pytest.mark.parametrize(
    ("story", "version"),
    [(story, version) for story in STORIES for version in VERSIONS[story.api_key]],
    ids=lambda value: value.name if isinstance(value, Story) else f"v{value}",
)
def test_both_answer_the_same(story: Story, version: int, pair_named: Callable[[str], Pair]) -> None:
    pair = pair_named("plain")
    ours = _told(story, version, pair.kshim, None)
    theirs = _told(story, version, pair.apache_kafka, ours)
    for expected, got in zip(theirs, ours, strict=True):
        if got.meant:
            assert got.answer != expected.answer, f"no longer differs ({got.meant}): {got.request}"
        else:
            assert got.answer == expected.answer, got.request


def _told(story: Story, version: int, server: Server, expected: list[Told] | None) -> list[Told]:
    admin = Admin((server.host, server.port), story.name, version, expected)
    try:
        story.tell(admin)
    finally:
        admin.close()
    return admin.told
