"""`kshim topic`, by address."""

from __future__ import annotations

from integration.commands.running import Kshim
from integration.support.clients import Admin


def test_a_topic_from_its_creation_to_its_end(kshim: Kshim, topic: str) -> None:
    configs = ("--set", "cleanup.policy=compact", "--set", "segment.ms=60000")
    assert kshim("topic", "create", topic, "-p", "3", *configs) == f"topic {topic} is created\n"
    assert topic in kshim("topic", "list", "--names").splitlines()
    (described,) = kshim.json("topic", "describe", topic)
    assert described["configs"] == {"cleanup.policy": "compact", "segment.ms": "60000"}
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert {each["leader"] for each in described["partitions"]} == {1}

    altered = ("-p", "5", "--set", "segment.ms=70000", "--unset", "cleanup.policy")
    assert kshim("topic", "alter", topic, *altered) == f"topic {topic} is altered\n"
    (described,) = kshim.json("topic", "describe", topic)
    assert described["configs"] == {"segment.ms": "70000"}
    assert len(described["partitions"]) == 5

    assert kshim("topic", "delete", topic) == f"topic {topic} is deleted\n"
    assert kshim.refusal("topic", "describe", topic).startswith(f"no topic {topic}")


def test_another_client_sees_the_topic(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "--partitions", "2")
    admin = Admin(kshim.bootstrap)
    admin.add_partitions(topic, 3)
    admin.close()
    (described,) = kshim.json("topic", "describe", topic)
    assert len(described["partitions"]) == 3


def test_internal_topics_are_listed_on_request(kshim: Kshim) -> None:
    internal = {each["topic"] for each in kshim.json("topic", "list", "--internal") if each["is_internal"]}
    assert not internal & {each["topic"] for each in kshim.json("topic", "list")}


def test_what_the_broker_refuses_is_one_line(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "2")
    assert kshim.refusal("topic", "create", topic).startswith(f"topic {topic}: TOPIC_ALREADY_EXISTS")
    assert kshim("topic", "create", topic, "--if-not-exists").startswith(f"topic {topic}: TOPIC_ALREADY")
    assert kshim.refusal("topic", "alter", topic, "-p", "1").startswith(f"topic {topic}: INVALID_PARTITIONS")
    mistaken = kshim.refusal("topic", "alter", topic, "--set", "retention.millis=1")
    assert "INVALID_CONFIG" in mistaken
    assert "did you mean retention.ms" in mistaken
    assert kshim("topic", "delete", "no-such-topic", "--if-exists").startswith("topic no-such-topic: UNKNOWN")
    near = kshim.refusal("topic", "delete", topic[:-1] + "x")
    assert f"did you mean {topic}" in near


def test_a_dry_run_creates_nothing(kshim: Kshim, topic: str) -> None:
    assert kshim("topic", "create", topic, "--dry-run") == f"topic {topic} can be created\n"
    assert topic not in kshim("topic", "list", "--names").splitlines()
    line = kshim.refusal("topic", "create", topic, "--dry-run", "-r", "7")
    assert line.startswith(f"topic {topic}: INVALID_REPLICATION_FACTOR")


def test_of_several_topics_each_is_tried(kshim: Kshim, topic: str) -> None:
    done = kshim.run("topic", "create", topic, topic, f"{topic}-b")
    assert done.returncode == 2
    assert done.stdout.decode() == f"topic {topic} is created\ntopic {topic}-b is created\n"
    assert done.stderr.count(b"\n") == 1


def test_no_server_at_the_address(kshim: Kshim) -> None:
    line = kshim.refusal("topic", "list", "-b", "127.0.0.1:1")
    assert line == "broker 127.0.0.1:1 cannot be reached: Connection refused"
