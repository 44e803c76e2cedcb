"""Lines are carried from file to file, while workers come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.frameworks.connect.story import PARTITIONS, Story
from integration.frameworks.jars import fetch_jars

from integration.support.server import Server
from integration.support.toolchain import or_skip

KILLED, FROZEN = "killed", "frozen"


@pytest.fixture(scope="session")
def connect() -> str:
    """The class path of Kafka Connect and its connectors of files."""
    with or_skip("Kafka Connect"):
        return fetch_jars(Path(__file__).with_name("pom.xml"))


@pytest.fixture
def tell(broker: Server, connect: str, topic: str, tmp_path: Path) -> Iterator[Callable[[bool], Story]]:
    """Begins a story, with exactly-once support for sources or without."""
    stories: list[Story] = []

    def begin(eos: bool) -> Story:
        stories.append(Story(broker, connect, topic, eos, tmp_path))
        return stories[-1]

    yield begin
    for story in stories:
        story.end()


def lose_the_source(story: Story, how: str) -> None:
    """A worker is joined by another; the one that reads the lines is lost, and comes back."""
    first = story.start("first")
    story.read_lines(first)
    story.write_lines(first)
    story.wait_more()
    second = story.start("second")
    story.wait_spread(first, second)
    story.wait_more()
    lost = story.worker_of(story.source, asked=first)
    (left,) = {first, second} - {lost}
    lost.kill() if how == KILLED else lost.freeze()
    story.wait_spread(left)
    story.wait_more()
    if how == KILLED:
        lost = story.start("first" if lost is first else "second")
    else:
        lost.thaw()
    story.wait_spread(left, lost)
    story.wait_more()


@pytest.mark.parametrize("how", [KILLED, FROZEN])
def test_each_line_arrives_once_though_a_worker_is_lost(tell: Callable[[bool], Story], how: str) -> None:
    """A frozen worker goes on where it was, although another has taken its place."""
    story = tell(True)
    lose_the_source(story, how)
    lines = story.finish()
    records = story.records(len(lines))
    assert sorted(line for _, line in records) == lines
    for partition in range(PARTITIONS):
        of_one = [line for each, line in records if each == partition]
        assert of_one == sorted(of_one)


def test_no_line_is_lost_without_exactly_once_support(tell: Callable[[bool], Story]) -> None:
    story = tell(False)
    lose_the_source(story, KILLED)
    lines = story.finish()
    assert {line for _, line in story.records(len(lines))} == {*lines}
