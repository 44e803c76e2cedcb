"""Apache Kafka and kshim answer administrators in the same way, at every version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.differential.playing.pairs import Pair
from integration.differential.stories.admin_talk import Admin, Story
from integration.differential.stories.administrators import STORIES
from integration.differential.stories.telling import told
from schemas.registry import VERSIONS


@pytest.mark.parametrize(
    ("story", "version"),
    [(story, version) for story in STORIES for version in VERSIONS[story.api_key]],
    ids=lambda value: value.name if isinstance(value, Story) else f"v{value}",
)
def test_both_answer_the_same(
    story: Story, version: int, pair_named: Callable[[str], Pair], compared: Callable[[int], None]
) -> None:
    pair = pair_named("plain")
    apache_kafka, kshim = pair.targets
    ours = told(story.tell, Admin(kshim, story.name, version))
    theirs = told(story.tell, Admin(apache_kafka, story.name, version, ours))
    for expected, got in zip(theirs, ours, strict=True):
        if got.meant:
            assert got.answer != expected.answer, f"no longer differs ({got.meant}): {got.request}"
        else:
            assert got.answer == expected.answer, got.request
    compared(len(ours))
