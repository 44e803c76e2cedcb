"""Apache Kafka and kshim answer requests about transactions in the same way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.differential.stories import transactions as transaction_stories
from integration.differential.stories.telling import Servers, assert_same, stories_of
from integration.differential.stories.transaction_talk import TransactionTalk

SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
STORIES = stories_of(transaction_stories)


@pytest.mark.parametrize("name", STORIES)
def test_both_answer_a_story_alike(name: str, servers: Servers, compared: Callable[[int], None]) -> None:
    count = assert_same(
        STORIES[name], [TransactionTalk(server.host, server.port, name) for server in servers]
    )
    compared(count)
