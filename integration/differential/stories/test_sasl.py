"""Apache Kafka and kshim answer clients that authenticate, or try to, in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from integration.differential.stories import sasl as sasl_stories
from integration.differential.stories.sasl_settings import both_with_sasl
from integration.differential.stories.sasl_talk import SaslTalk
from integration.differential.stories.telling import stories_of
from integration.support.server import Server

STORIES = stories_of(sasl_stories)
AT_ONCE = 10
"""More would keep each other waiting."""
Told = Mapping[str, tuple[Future[list[str]], Future[list[str]]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Told]:
    """What Apache Kafka and kshim tell in each story. Most of it is waiting, so all are told at once."""
    with both_with_sasl(tmp_path_factory.mktemp("sasl")) as both:
        for server in both:
            talk = SaslTalk(server.host, server.port)
            talk.add_users()
            talk.close()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            yield {
                name: (threads.submit(tell, name, both[0]), threads.submit(tell, name, both[1]))
                for name in STORIES
            }


def tell(name: str, server: Server) -> list[str]:
    talk = SaslTalk(server.host, server.port)
    try:
        STORIES[name](talk)
    finally:
        talk.close()
    return talk.heard


@pytest.mark.parametrize("name", STORIES)
def test_both_tell_the_same_story(name: str, told: Told) -> None:
    theirs, ours = (future.result() for future in told[name])
    assert ours == theirs
