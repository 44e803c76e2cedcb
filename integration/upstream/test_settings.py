"""The settings of kshim's groups, and those of the upstream that matter to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition

from integration import apache_kafka
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, offset_and_metadata
from integration.support.server import Server, run_to_end, set_options

RETENTION_S = 60
DELAY_MS = 8_000
"""Until a new group at the upstream is balanced; Kafka's default is 3 s."""
Start = Callable[..., Server]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Server]:
    """It forgets offsets and producers quickly, and balances groups late."""
    settings = {
        "offsets.retention.minutes": RETENTION_S // 60,
        "offsets.retention.check.interval.ms": 2000,
        "producer.id.expiration.ms": 600_000,
        "group.initial.rebalance.delay.ms": DELAY_MS,
    }
    data_dir = tmp_path_factory.mktemp("upstream") / "kafka"
    server = Server(data_dir, set_options(settings), command=apache_kafka.COMMAND).start()
    yield server
    server.kill()


@pytest.fixture
def start(kafka: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts kshim with settings."""
    started: list[Server] = []

    def start(**settings: object) -> Server:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        options = ["--upstream", kafka.bootstrap, *set_options(named)]
        started.append(Server(tmp_path / f"kshim{len(started)}", options))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()


def commit(server: Server, topic: str) -> Callable[[Server], int | None]:
    """Have a group commit offset 5. Return a function that asks a server for the committed offset."""
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    consumer = new_consumer(server.bootstrap, group_id=f"of-{topic}")
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit({TopicPartition(topic, 0): offset_and_metadata(5)})
    consumer.close()

    def offset(at: Server) -> int | None:
        admin = Admin(at.bootstrap)
        found = admin.group_offsets(f"of-{topic}").get((topic, 0))
        admin.close()
        return found

    return offset


@pytest.mark.few
def test_other_names_and_no_mirroring(kafka: Server, start: Start, topic: str) -> None:
    kshim = start(
        upstream_groups_topic="groups-of-mine",
        upstream_groups_topic_partitions=7,
        upstream_groups_topic_replication_factor=1,
        upstream_groups_group_id="mine",
        upstream_groups_session_timeout_ms=7000,
        upstream_groups_lease_ms=1000,
        upstream_offsets_mirror_enable="false",
    )
    offset = commit(kshim, topic)
    assert offset(kshim) == 5
    admin = Admin(kafka.bootstrap)
    assert len(admin.partitions("groups-of-mine")) == 7
    groups = admin.list_groups()
    admin.close()
    assert "mine" in groups
    assert f"of-{topic}" not in groups
    wait_until(
        lambda: any("producer.id.expiration.ms of the upstream is 600000" in line for line in kshim.log),
        10,
        kshim.report,
    )


def test_the_first_kshim_does_not_wait_until_its_group_is_balanced(
    kafka: Server, start: Start, topic: str
) -> None:
    """A kshim that starts again leads all shards at once. They are assigned when the group is balanced."""
    commit(kafka, topic)  # a cluster that nobody has used yet has no coordinators
    kshim = start(upstream_groups_group_id=topic)
    for starts in (1, 2):
        told = [line for line in kshim.log if "will lead 50 of 50 shards" in line]
        assert len(told) == 2 * starts - 1, kshim.report()
        wait_until(
            lambda starts=starts: sum("will lead 50 of 50" in line for line in kshim.log) == 2 * starts,
            20,
            kshim.report,
        )
        if starts == 1:
            kshim.stop()
            kshim.start()


def test_two_kshim_that_differ_say_so(start: Start) -> None:
    first, second = start(), start(upstream_groups_lease_ms=800)
    line = f"kshim at {first.bootstrap} has upstream.groups.lease.ms=400, and here it is 800"
    wait_until(lambda: any(line in each for each in second.log), 20, second.report)
    line = f"kshim at {second.bootstrap} has upstream.groups.lease.ms=800, and here it is 400"
    wait_until(lambda: any(line in each for each in first.log), 20, first.report)


def test_two_kshim_with_other_topics_share_nothing(start: Start) -> None:
    first, second = start(), start(upstream_groups_topic="another", upstream_groups_topic_partitions=3)
    wait_until(lambda: any("they share no groups" in each for each in first.log), 20, first.report)
    wait_until(
        lambda: any("lead 3 of 3 shards of another; 1 kshim share" in each for each in second.log), 20, "3"
    )
    assert any("lead 50 of 50 shards of __kshim_groups; 1 kshim share" in each for each in first.log[-5:])


def test_a_lease_that_is_too_long_is_refused(kafka: Server, tmp_path: Path) -> None:
    done = run_to_end(
        *("serve", "--upstream", kafka.bootstrap, "--data-dir", ":memory:"),
        *("--set", "upstream.groups.lease.ms=3001"),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "kshim: upstream.groups.lease.ms=3001: expected at most half of upstream.groups.session.timeout.ms, "
        "which is 6000"
    )


def test_mirrored_offsets_outlive_the_retention_of_the_upstream(
    kafka: Server, start: Start, topic: str
) -> None:
    """By then the upstream has dropped every offset that was not sent again."""
    direct = commit(kafka, f"{topic}-direct")
    offset = commit(start(), topic)
    wait_until(lambda: offset(kafka) == 5, 10, "the told offset")
    begun = time.monotonic()
    wait_until(lambda: direct(kafka) is None, 2 * RETENTION_S, "the upstream to forget")
    until = begun + 1.5 * RETENTION_S
    while time.monotonic() < until:
        assert offset(kafka) == 5
        time.sleep(1)  # the time is what is tested
