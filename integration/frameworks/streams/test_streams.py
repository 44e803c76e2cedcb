"""Kafka Streams counts all that it is fed, while instances and the broker come and go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from integration.frameworks.streams.story import PATIENCE_S, Story
from integration.java.tool import run_to_end
from integration.support.awaiting import wait_until
from integration.support.java import compile_with, fetch_jars
from integration.support.server import Server
from integration.support.toolchain import or_skip

HERE = Path(__file__).parent
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
OUTLIVES_THE_BROKER = {"producer.transaction.timeout.ms": "60000"}
"""An instance ends when its transaction was aborted while it waited for the broker."""


@pytest.fixture(scope="session")
def application() -> str:
    """The class path of the application."""
    with or_skip("Kafka Streams"):
        return compile_with(fetch_jars(HERE / "pom.xml"), HERE / "Sums.java")


@pytest.fixture
def tell(broker: Server, application: str, topic: str, tmp_path: Path) -> Iterator[Callable[[str], Story]]:
    """Begins a story with a guarantee."""
    stories: list[Story] = []

    def begin(guarantee: str) -> Story:
        stories.append(Story(broker, application, topic, guarantee, tmp_path))
        return stories[-1]

    yield begin
    for story in stories:
        story.end()


def check_each_is_counted_once(story: Story, fed: set[int]) -> None:
    """Check the output, whose records show the state after each number, and the state."""
    assert sorted(story.results.numbers()) == sorted(fed)
    for results in story.results.by_bucket.values():
        assert [result.count for result in results] == list(range(1, len(results) + 1))
        assert [result.sum for result in results] == list(accumulate(result.number for result in results))
    assert story.state() == {bucket: results[-1] for bucket, results in story.results.by_bucket.items()}


def come_and_go(story: Story) -> None:
    """An instance is joined by another, killed, and started again."""
    first = story.start("first")
    story.wait_shared(first)
    story.wait_more()
    second = story.start("second")
    story.wait_shared(first, second)
    story.wait_more()
    first.kill()
    story.wait_shared(second)
    story.wait_more()
    again = story.start("first")
    story.wait_shared(second, again)
    story.wait_more()
    wait_until(lambda: sum(again.facts("restored")) > 0, PATIENCE_S, story.report)


def test_each_number_is_counted_once_while_instances_come_and_go(tell: Callable[[str], Story]) -> None:
    story = tell(EXACTLY_ONCE)
    come_and_go(story)
    check_each_is_counted_once(story, story.finish())


def test_no_number_is_lost_with_at_least_once(tell: Callable[[str], Story]) -> None:
    story = tell(AT_LEAST_ONCE)
    come_and_go(story)
    fed = story.finish()
    assert set(story.results.numbers()) == fed
    assert set(story.state()) == set(story.results.by_bucket)
    for bucket, state in story.state().items():
        least = [number for number in fed if f"bucket {number % len(story.results.by_bucket)}" == bucket]
        assert state.count >= len(least)
        assert state.sum >= sum(least)


def test_the_topics_it_made_have_its_configs(tell: Callable[[str], Story]) -> None:
    story = tell(EXACTLY_ONCE)
    story.start("first")
    story.wait_more()
    assert {story.repartition, story.changelog} <= story.admin.list_topics()
    repartition, changelog = map(story.admin.configs, (story.repartition, story.changelog))
    assert (repartition["cleanup.policy"], repartition["retention.ms"]) == ("delete", "-1")
    assert changelog["cleanup.policy"] == "compact"
    wait_until(
        lambda: all(story.results.starts(story.repartition)), PATIENCE_S, "counted records are deleted"
    )
    assert not any(story.results.starts(story.changelog))
    group = story.admin.describe_group(story.application)
    assert (group.state, group.protocol_type, group.protocol) == ("Stable", "consumer", "stream")


def test_a_reset_application_counts_all_again(
    tell: Callable[[str], Story], broker: Server, class_path: str
) -> None:
    story = tell(EXACTLY_ONCE)
    first = story.start("first")
    story.wait_more()
    fed = story.finish()
    first.stop()
    which = ("--bootstrap-server", broker.bootstrap, "--application-id", story.application)
    # An instance that is stopped does not leave its group: --force removes it.
    status, text = run_to_end(class_path, "StreamsResetter", *which, "--input-topics", story.input, "--force")
    assert status == 0, text
    assert not {story.repartition, story.changelog} & story.admin.list_topics()
    shutil.rmtree(first.directory / "state")
    story.start("first")
    wait_until(lambda: len(story.results.poll()) == 2 * len(fed), PATIENCE_S, story.report)
    assert sorted(story.results.numbers()) == sorted([*fed, *fed])
    assert story.state() == {bucket: results[-1] for bucket, results in story.results.by_bucket.items()}
    assert sum(state.count for state in story.state().values()) == len(fed)


def test_each_number_is_counted_once_though_the_broker_is_killed(
    tell: Callable[[str], Story], broker: Server
) -> None:
    story = tell(EXACTLY_ONCE)
    instances = [story.start(name, **OUTLIVES_THE_BROKER) for name in ("first", "second")]
    story.wait_shared(*instances)
    for _ in range(2):
        story.wait_more()
        broker.kill()
        broker.restart()
    story.wait_more()
    check_each_is_counted_once(story, story.finish())
