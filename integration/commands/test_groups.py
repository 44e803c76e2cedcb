"""Groups by address: `kshim groups`, `kshim group` and `kshim consume --group`."""

from __future__ import annotations

from kafka import TopicPartition

from integration.commands.running import Kshim
from integration.serve.polling import polling
from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer, offset_and_metadata


def committed(kshim: Kshim, group: str) -> dict[int, int]:
    rows = kshim.json("group", "describe", group)["rows"]
    return {row["partition"]: row["committed"] for row in rows}


def commit(kshim: Kshim, topic: str, group: str, offset: int) -> None:
    """Commit with kafka-python, without a member."""
    consumer = new_consumer(kshim.bootstrap, group_id=group)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.commit({partition: offset_and_metadata(offset)})
    consumer.close()


def test_a_group_without_members(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "1")
    kshim("produce", topic, stdin=b"1\n2\n3\n4\n5\n")
    commit(kshim, topic, topic, 2)
    (row,) = kshim.json("group", "describe", topic)["rows"]
    assert (row["committed"], row["end"], row["lag"], row["member_id"]) == (2, 5, 3, None)
    (listed,) = [each for each in kshim.json("groups")["groups"] if each["group_id"] == topic]
    assert (listed["state"], listed["lag"]) == ("Empty", 3)

    planned = kshim("group", "reset-offsets", topic, "--to-latest", "--dry-run").splitlines()
    assert planned[0].split("  ")[-1] == "New offset"
    assert planned[1].split() == [topic, "0", "2", "5"]
    assert committed(kshim, topic) == {0: 2}
    kshim("group", "reset-offsets", topic, "--to-latest")
    assert committed(kshim, topic) == {0: 5}
    kshim("group", "reset-offsets", topic, "--shift", "-2")
    assert committed(kshim, topic) == {0: 3}
    kshim("group", "set-offsets", topic, "--topic", topic, "--partition", "0", "--offset", "1")
    assert committed(kshim, topic) == {0: 1}
    kshim("group", "reset-offsets", topic, "--to-time", "1970-01-01")
    assert committed(kshim, topic) == {0: 0}

    assert kshim("group", "delete", topic) == f"group {topic} is deleted\n"
    assert kshim.refusal("group", "describe", topic).startswith(f"no group {topic}")


def test_a_group_with_a_member(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "2")
    with polling(kshim.bootstrap, topic, topic):

        def assigned() -> list[str]:
            rows = kshim.json("group", "describe", topic)["rows"] if topic in kshim("groups") else []
            return [row["member_id"] for row in rows if row["partition"] is not None]

        wait_until(lambda: len(assigned()) == 2, 60, lambda: "the assignment")
        (member,) = set(assigned())
        for arguments in (["group", "reset-offsets", topic, "--topic", topic, "--to-earliest"],
                          ["group", "delete", topic], ["consume", topic, "--group", topic]):  # fmt: skip
            assert kshim.refusal(*arguments).startswith(f"group {topic} has 1 member(s), {member}: ")
        assert kshim.refusal("group", "remove", topic, "nobody").endswith(f"it has {member}")
        assert kshim("group", "remove", topic, member) == f"group {topic}: {member} is removed\n"


def test_consume_goes_on_where_the_group_has_stopped(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "1")
    kshim("produce", topic, stdin=b"1\n2\n3\n4\n5\n")
    assert kshim("consume", topic, "--group", topic, "-n", "2") == "1\n2\n"
    assert committed(kshim, topic) == {0: 2}
    assert kshim("consume", topic, "--group", topic) == "3\n4\n5\n"
    assert kshim("consume", topic, "--group", topic) == ""


def test_a_group_that_does_not_exist(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic)
    commit(kshim, topic, f"{topic}-readers", 0)
    line = kshim.refusal("group", "describe", f"{topic}-reader")
    assert line.startswith(f"no group {topic}-reader; did you mean {topic}-readers")
