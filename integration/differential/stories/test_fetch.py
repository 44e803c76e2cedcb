"""Apache Kafka and kshim answer Fetch, ListOffsets and OffsetForLeaderEpoch in the same way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.differential.stories import fetch as fetch_stories
from integration.differential.stories.talk import Talk
from integration.differential.stories.telling import Servers, assert_same, stories_of

SETTINGS = {"auto.create.topics.enable": "false"}
STORIES = stories_of(fetch_stories)


@pytest.mark.parametrize("name", STORIES)
def test_both_answer_a_story_alike(name: str, servers: Servers, compared: Callable[[int], None]) -> None:
    count = assert_same(STORIES[name], [Talk(server.host, server.port, name) for server in servers])
    compared(count)
