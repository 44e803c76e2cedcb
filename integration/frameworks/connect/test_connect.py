"""Lines are carried from file to file, while workers come and go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.frameworks.connect.story import PARTITIONS, SINK_TASKS, Story
from integration.frameworks.connect.worker import PATIENCE_S
from integration.java.tool import run_to_end
from integration.support.awaiting import wait_until
from integration.support.java import compile_with, fetch_jars
from integration.support.server import Server
from integration.support.toolchain import or_skip
from kshim.testing.wire import Wire
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest

KILLED, FROZEN = "killed", "frozen"


@pytest.fixture(scope="session")
def connect() -> str:
    """The class path of Kafka Connect and its connectors of files."""
    here = Path(__file__).parent
    with or_skip("Kafka Connect"):
        return compile_with(fetch_jars(here / "pom.xml"), here / "AppInfoParser.java")


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


def check_each_arrived_once(story: Story) -> None:
    """And in order, as far as a topic has one."""
    lines = story.finish()
    records = story.records()
    assert sorted(line for _, line in records) == lines
    for partition in range(PARTITIONS):
        of_one = [line for each, line in records if each == partition]
        assert of_one == sorted(of_one)


@pytest.mark.parametrize("how", [KILLED, FROZEN])
def test_each_line_arrives_once_though_a_worker_is_lost(tell: Callable[[bool], Story], how: str) -> None:
    """A frozen worker goes on where it was, although another has taken its place."""
    story = tell(True)
    lose_the_source(story, how)
    check_each_arrived_once(story)


def test_each_line_arrives_once_though_the_broker_is_killed(
    tell: Callable[[bool], Story], broker: Server
) -> None:
    story = tell(True)
    worker = story.start("first")
    story.read_lines(worker)
    story.write_lines(worker)
    for _ in range(2):
        story.wait_more()
        broker.kill()
        broker.restart()
    story.wait_more()
    check_each_arrived_once(story)


def test_no_line_is_lost_without_exactly_once_support(tell: Callable[[bool], Story]) -> None:
    story = tell(False)
    lose_the_source(story, KILLED)
    lines = story.finish()
    assert {line for _, line in story.records()} == {*lines}


def test_a_connector_is_paused_stopped_reset_and_deleted(tell: Callable[[bool], Story]) -> None:
    story = tell(True)
    worker = story.start("first")
    story.read_lines(worker)
    story.write_lines(worker)
    story.wait_more()

    source = f"/connectors/{story.source}"
    worker.call("PUT", f"{source}/pause")
    story.wait_tasks(worker, {story.source: 1}, "PAUSED")
    paused_at = story.lines.count
    story.lines.wait_more(200)
    assert max(line for _, line in story.records()) <= paused_at
    worker.call("PUT", f"{source}/resume")
    story.wait_more()
    lines = story.finish()
    assert sorted(line for _, line in story.records()) == lines

    # Its offsets can be taken back when its producers are fenced off.
    worker.call("PUT", f"{source}/stop")
    story.wait_tasks(worker, {story.source: 0})
    (offsets,) = worker.call("GET", f"{source}/offsets")["offsets"]
    assert offsets["offset"] == {"position": story.lines.path.stat().st_size}
    worker.call("DELETE", f"{source}/offsets")
    assert worker.call("GET", f"{source}/offsets") == {"offsets": []}
    worker.call("PUT", f"{source}/resume")
    wait_until(lambda: len(story.records()) == 2 * len(lines), PATIENCE_S, story.report)
    assert sorted(line for _, line in story.records()) == sorted([*lines, *lines])

    for name in (story.source, story.sink):
        worker.call("DELETE", f"/connectors/{name}")
    assert worker.call("GET", "/connectors") == []
    wait_until(lambda: story.state_of(f"connect-{story.sink}") == "Empty", PATIENCE_S, story.report)


def describe(broker: Server, group: str, members: int) -> DescribedGroup:
    """The group, as soon as it is stable with so many members."""

    def described() -> DescribedGroup | None:
        with Wire(broker.host, broker.port) as wire:
            found: DescribedGroup
            (found,) = wire.ask(5, DescribeGroupsRequest(groups=(group,))).groups
        return found if (found.group_state, len(found.members)) == ("Stable", members) else None

    found = wait_until(described, PATIENCE_S, f"{group} is stable with {members} members")
    assert found is not None
    return found


def test_its_group_and_topics_are_seen_by_administrators(
    tell: Callable[[bool], Story], broker: Server, class_path: str
) -> None:
    story = tell(False)
    worker = story.start("first")
    story.read_lines(worker)
    story.write_lines(worker)
    story.wait_more()
    for topic in story.internal.values():
        assert story.admin.configs(topic)["cleanup.policy"] == "compact"
    sinks = f"connect-{story.sink}"
    cluster = describe(broker, story.group, 1)
    assert (cluster.protocol_type, cluster.protocol_data) == ("connect", "sessioned")
    assert [member.client_id for member in cluster.members] == ["first"]
    assert describe(broker, sinks, SINK_TASKS).protocol_type == "consumer"
    connect = ("--bootstrap-server", broker.bootstrap)
    status, text = run_to_end(class_path, "GroupsCommand", *connect, "--list")
    assert status == 0, text
    found = {tuple(line.split()) for line in text.splitlines()}
    assert {(story.group, "Classic", "connect"), (sinks, "Classic", "consumer")} <= found
    groups = "consumer.group.ConsumerGroupCommand"
    status, text = run_to_end(class_path, groups, *connect, "--describe", "--group", sinks, "--state")
    assert re.search(rf"{sinks}\s+127.0.0.1:\d+ +\(1\) +range +Stable +{SINK_TASKS}", text), text
    _, text = run_to_end(class_path, groups, *connect, "--describe", "--group", story.group)
    assert f"GroupId {story.group} is not a consumer group (connect)" in text
