"""Apache Kafka and kshim answer requests about transactions in the same way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.differential.stories import transactions as transaction_stories
from integration.differential.stories.telling import Servers, assert_same, both_servers, stories_of
from integration.differential.stories.transaction_talk import TransactionTalk

SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
STORIES = stories_of(transaction_stories)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Servers]:
    with both_servers(tmp_path_factory.mktemp("servers"), SETTINGS) as both:
        yield both


@pytest.mark.parametrize("name", STORIES)
def test_both_tell_the_same_story(name: str, servers: Servers) -> None:
    assert_same(STORIES[name], name, TransactionTalk, servers)
