"""Apache Kafka and kshim answer clients that authenticate, or try to, in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from integration.differential.stories import sasl as sasl_stories
from integration.differential.stories.sasl_settings import both_with_sasl
from integration.differential.stories.sasl_talk import SaslTalk
from integration.differential.stories.telling import stories_of, told

STORIES = stories_of(sasl_stories)
AT_ONCE = 10
"""More would keep each other waiting."""
Heard = Mapping[str, tuple[Future[Sequence[str]], Future[Sequence[str]]]]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Heard]:
    """What Apache Kafka and kshim answer in each story. Most of it is waiting, so all are told at once."""
    with both_with_sasl(tmp_path_factory.mktemp("sasl")) as both:
        for server in both:
            told(SaslTalk.add_users, SaslTalk(server.host, server.port))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            theirs, ours = (
                {
                    name: threads.submit(told, story, SaslTalk(server.host, server.port))
                    for name, story in STORIES.items()
                }
                for server in both
            )
            yield {name: (theirs[name], ours[name]) for name in STORIES}


@pytest.mark.parametrize("name", STORIES)
def test_both_answer_a_story_alike(name: str, heard: Heard, compared: Callable[[int], None]) -> None:
    theirs, ours = (future.result() for future in heard[name])
    assert ours == theirs
    compared(len(ours))
