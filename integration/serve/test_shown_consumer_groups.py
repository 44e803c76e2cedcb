"""All that shows or steers groups, with a group of librdkafka's consumers with group.protocol=consumer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer

from integration.support.awaiting import wait_until
from integration.support.server import run_to_end
from kshim.control.client import ControlError
from kshim.testing import Kshim, serving

pytestmark = pytest.mark.kshim_only("Apache Kafka has no such tools")

TIMEOUT_S = 30


class Served:
    """A server with its page."""

    def __init__(self, kshim: Kshim) -> None:
        self.kshim = kshim
        self._page = re.findall("the page is at (http://.*)/", self.log())[0]
        self.topic, self.group = kshim.topic(partitions=4), kshim.group()

    def run(self, *arguments: str) -> str:
        """Run a command about the server, and return what it prints."""
        path = ("--control", str(self.kshim._control))
        done = run_to_end(*arguments, *path, cwd=Path.cwd(), timeout_s=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, target: str) -> str:
        with urlopen(self._page + target, timeout=10) as reply:
            text: str = reply.read().decode()
            return text

    def log(self) -> str:
        """The server's log."""
        return (self.kshim._control.parent / "log").read_text()

    def settings(
        self, client_id: str, instance_id: str | None = None, protocol: str = "consumer"
    ) -> dict[str, Any]:
        """The settings of a member."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.kshim.bootstrap,
            "group.id": self.group,
            "group.protocol": protocol,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
        }
        return settings | ({} if instance_id is None else {"group.instance.id": instance_id})

    @contextmanager
    def polled(
        self, client_id: str, instance_id: str | None = None, protocol: str = "consumer"
    ) -> Iterator[None]:
        """A member that another thread polls."""
        settings = self.settings(client_id, instance_id, protocol)
        over = threading.Event()

        def poll() -> None:
            consumer = Consumer(settings)
            consumer.subscribe([self.topic])
            while not over.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    consumer.commit(message, asynchronous=False)
            consumer.close()

        thread = threading.Thread(target=poll)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(properties={"http.listener": "127.0.0.1:0"}) as kshim:
        yield Served(kshim)


@pytest.fixture
def pair(served: Served) -> Iterator[Served]:
    """The group has a dynamic and a static member, and has committed its only record."""
    served.kshim.produce(served.topic, ["one"])
    with served.polled("first"), served.polled("second", "instance"):
        served.kshim.wait_for_assignment(served.group, 2, timeout_s=TIMEOUT_S)
        served.kshim.wait_caught_up(served.group, served.topic, timeout_s=TIMEOUT_S)
        yield served


def test_the_command_line(pair: Served) -> None:
    (row,) = json.loads(pair.run("groups", "--json"))["groups"]
    assert (row["group_id"], row["state"], row["protocol"]) == (pair.group, "Stable", "uniform")
    assert (row["members"], row["committed"], row["lag"]) == (2, 1, 0)
    assert row["generation"] == row["assignment_epoch"]
    assert row["last"]["cause"] == "a member joined"
    assert "Stable" in pair.run("groups")
    assert "Stable" in pair.run("top")
    said = pair.run("why", pair.group)
    assert f"Group {pair.group} is Stable in epoch {row['generation']}, with 2 members." in said
    assert "The group rebalanced because a member joined" in said
    assert "until all had their assignments." in said


def test_http(pair: Served) -> None:
    (row,) = json.loads(pair.get("/groups"))["groups"]
    assert (row["group_id"], row["members"], row["lag"]) == (pair.group, 2, 0)
    group = json.loads(pair.get(f"/groups/{pair.group}"))
    assert [row["lag"] for row in group["offsets"]] == [0]
    held = [each["assignment"][pair.topic] for each in group["members"]]
    assert sorted(index for those in held for index in those) == [0, 1, 2, 3]
    for member in group["members"]:
        assert member["consumer"] == {
            "epoch": group["generation"],
            "state": "stable",
            "topics": [pair.topic],
            "regex": "",
            "assignor": None,
            "target": member["assignment"],
        }
    rebalances = json.loads(pair.get(f"/groups/{pair.group}/rebalances"))["rebalances"]
    assert rebalances[-1]["is_of_consumers"]
    labels = f'consumergroup="{pair.group}"'
    metrics = pair.get("/metrics").splitlines()
    assert f"kafka_consumergroup_members{{{labels}}} 2.0" in metrics
    assert f'kshim_consumergroup_state{{{labels},state="Stable"}} 1.0' in metrics
    assert f'kshim_consumergroup_state{{{labels},state="Reconciling"}} 0.0' in metrics
    assert 'kshim_rebalances_total{cause="a member joined",consumergroup=' in pair.get("/metrics")
    page = pair.get(f"/page/groups/{pair.group}")
    for words in ("Epoch", "instance", "uniform", "Nobody waits.", "a member joined", "Gave up after"):
        assert words in page


def said(served: Served, *words: str) -> Callable[[], bool]:
    """Returns true once `kshim why` prints all these words."""
    return lambda: all(each in served.run("why", served.group) for each in words)


def test_a_member_that_does_not_give_up_partitions(served: Served) -> None:
    """Its program does not poll, but its client sends heartbeats."""
    slow = Consumer(served.settings("slow"))
    slow.subscribe([served.topic])
    wait_until(lambda: (slow.poll(0.1), len(slow.assignment()) == 4)[1], TIMEOUT_S, "all partitions")
    with served.polled("next"):
        waits = "It waits for slow to give up "
        wait_until(said(served, waits), TIMEOUT_S, lambda: served.run("why", served.group))
        printed = served.run("why", served.group)
        (line,) = [each for each in printed.splitlines() if each.startswith(waits)]
        topic = served.topic
        assert re.fullmatch(
            rf"It waits for slow to give up {topic}-\d and {topic}-\d: asked \d+\.\d+ s ago, "
            r"it has not acknowledged that, and is removed in \d+\.\d+ s\.",
            line,
        )
        assert "These members wait for partitions that others have not given up: next." in printed
        assert f"to give up {topic}-" in served.get(f"/page/groups/{served.group}")
        (each,) = json.loads(served.get(f"/groups/{served.group}"))["waits_for"]["revoking"]
        assert len(each["partitions"][topic]) == 2
        wait_until(lambda: (slow.poll(0.1), len(slow.assignment()) == 2)[1], TIMEOUT_S, "two partitions")
        wait_until(said(served, "slow gave up partitions: "), TIMEOUT_S, "the story")
        printed = served.run("why", served.group)
        assert "by an answer that had waited for news," in printed
        assert "\nEpoch  Began" in printed
    slow.close()


def test_a_group_that_changes_its_protocol(served: Served) -> None:
    with served.polled("old", protocol="classic"):
        served.kshim.wait_for_assignment(served.group, 1, timeout_s=TIMEOUT_S)
        with served.polled("new"):
            served.kshim.wait_for_assignment(served.group, 2, timeout_s=TIMEOUT_S)
            printed = served.run("why", served.group)
            assert "(with group.protocol=consumer, which makes the group a consumer group): new (" in printed
            assert "is a consumer group now, after generation 1: new (member " in printed
            assert "with group.protocol=consumer; it keeps 1 member of the classic protocol" in printed
        again = "is a classic group again, after epoch "
        wait_until(said(served, again), TIMEOUT_S, lambda: served.run("why", served.group))
        assert "because the last member of the consumer protocol is gone" in served.run("why", served.group)
        assert again in served.log()


def test_a_member_that_may_not_convert_the_group() -> None:
    properties = {"http.listener": "127.0.0.1:0", "group.consumer.migration.policy": "disabled"}
    with serving(properties=properties) as kshim:
        served = Served(kshim)
        with served.polled("old", protocol="classic"):
            kshim.wait_for_assignment(served.group, 1, timeout_s=TIMEOUT_S)
            refused = Consumer(served.settings("new"))
            refused.subscribe([served.topic])
            line = "GROUP_ID_NOT_FOUND: Cannot upgrade classic group"
            wait_until(lambda: (refused.poll(0.1), line in served.log())[1], TIMEOUT_S, served.log)
            printed = served.run("why", served.group)
            assert re.search(
                r"refused new \(member \S+, client at 127\.0\.0\.1\): GROUP_ID_NOT_FOUND", printed
            )
            assert "online upgrade is disabled." in printed
            assert kshim.describe_group(served.group).state == "Stable"
            refused.close()


def test_two_programs_with_one_instance_id(served: Served) -> None:
    """The second one is refused while the first one lives, and `why` names both."""
    with served.polled("first", "instance"):
        (holder,) = served.kshim.wait_for_assignment(served.group, 1, timeout_s=TIMEOUT_S).members
        second = Consumer(served.settings("second", "instance"))
        second.subscribe([served.topic])
        words = "UNRELEASED_INSTANCE_ID: Static member "
        wait_until(lambda: (second.poll(0.1), words in served.log())[1], TIMEOUT_S, served.log)
        printed = served.run("why", served.group)
        assert "refused instance (member " in printed
        assert f"the instance id is owned by {holder.member_id} member." in printed
        second.close()


def test_two_programs_with_one_instance_id_in_a_classic_group(served: Served) -> None:
    """The second one takes the place of the first one, which lives, so it did not just come back."""
    first = Consumer(served.settings("first", "instance", "classic"))
    first.subscribe([served.topic])
    wait_until(lambda: (first.poll(0.1), len(first.assignment()) == 4)[1], TIMEOUT_S, "all partitions")
    with served.polled("second", "instance", "classic"):
        line = "two live members use group.instance.id instance: "
        wait_until(said(served, line), TIMEOUT_S, served.log)
        printed = served.run("why", served.group)
        assert "(client second at 127.0.0.1) took the place of " in printed
        assert "(client first at 127.0.0.1), which is fenced; " in printed
    first.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_leaves_and_stays_connected(served: Served, protocol: str) -> None:
    """Its program does not poll in time, or unsubscribes. A client that closes is not reported.

    librdkafka leaves after max.poll.interval.ms only with the classic protocol.
    """
    intervals = {"max.poll.interval.ms": 6_000, "session.timeout.ms": 6_000} if protocol == "classic" else {}
    slow = Consumer(served.settings("slow", protocol=protocol) | intervals)
    slow.subscribe([served.topic])
    wait_until(lambda: (slow.poll(0.1), len(slow.assignment()) == 4)[1], TIMEOUT_S, "all partitions")
    if protocol == "consumer":
        slow.unsubscribe()
        slow.poll(0)  # gives its partitions up
    words = (
        "(client slow at 127.0.0.1) left, but is still connected: "
        "its program probably exceeded max.poll.interval.ms, or it unsubscribed"
    )
    wait_until(said(served, words), TIMEOUT_S, served.log)
    slow.close()
    with served.polled("closes", protocol=protocol):
        served.kshim.wait_for_assignment(served.group, 1, timeout_s=TIMEOUT_S)
    served.kshim.wait_empty(served.group)
    with served.polled("again", protocol=protocol):
        served.kshim.wait_for_assignment(served.group, 1, timeout_s=TIMEOUT_S)
    assert served.log().count("left, but is still connected") == 1


def test_members_are_expired_and_removed_and_join_again(pair: Served) -> None:
    kshim, group = pair.kshim, pair.group
    first = next(each for each in kshim.describe_group(group).members if each.client_id == "first")
    kshim.expire(group, first.member_id)
    kshim.wait_for_assignment(group, 2, timeout_s=TIMEOUT_S)
    kshim.remove(group, first.member_id)
    kshim.wait_for_assignment(group, 2, timeout_s=TIMEOUT_S)
    kshim.rebalance(group)
    kshim.wait_stable(group)

    def causes() -> list[str]:
        return [each.cause for each in kshim.rebalances(group)]

    asked_for = "an administrator asked for it"
    wait_until(lambda: asked_for in causes(), TIMEOUT_S, "the rebalance that was asked for")
    assert "a member's session expired" in causes()
    assert "an administrator removed a member" in causes()


def test_a_static_member_is_fenced(served: Served) -> None:
    kshim, group = served.kshim, served.group
    with served.polled("first", "instance"):
        (fenced,) = kshim.wait_for_assignment(group, 1, timeout_s=TIMEOUT_S).members
        kshim.fence(group, "instance")
        (away,) = kshim.describe_group(group).members
        assert away.member_id != fenced.member_id
        assert away.partitions == fenced.partitions
    with served.polled("again", "instance"):
        (member,) = kshim.wait_for_assignment(group, 1, timeout_s=TIMEOUT_S).members
        assert (member.client_id, len(member.partitions)) == ("again", 4)


def test_offsets_are_moved_and_the_group_is_deleted(served: Served) -> None:
    kshim, group = served.kshim, served.group
    with served.polled("first"):
        kshim.wait_for_assignment(group, 1, timeout_s=TIMEOUT_S)
        with pytest.raises(ControlError, match="has members"):
            kshim.set_offsets(group, {(served.topic, 0): 0})
    kshim.wait_empty(group)
    kshim.set_offsets(group, {(served.topic, 0): 0})
    assert kshim.offsets(group) == {(served.topic, 0): 0}
    kshim.delete_group(group)
    assert kshim.describe_group(group).state == "Dead"


def test_a_fault_strikes_the_heartbeats_of_one_group(pair: Served) -> None:
    with pair.kshim.fault("ConsumerGroupHeartbeat", group=pair.group, error="NOT_COORDINATOR") as fault:
        wait_until(lambda: fault.struck() > 0, TIMEOUT_S, "a heartbeat that is struck")
    with pair.kshim.fault("ConsumerGroupHeartbeat", group="another", error="NOT_COORDINATOR") as fault:
        pair.kshim.rebalance(pair.group)
        pair.kshim.wait_for_assignment(pair.group, 2, timeout_s=TIMEOUT_S)
        assert fault.struck() == 0
