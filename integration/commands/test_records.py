"""`kshim produce` and `kshim consume`, by address, together and with kafka-python."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence

import pytest
from kafka import KafkaProducer, codec

from integration.commands.running import Kshim
from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer, new_producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OF_KAFKA_PYTHON = [name for name in CODECS if name == "none" or getattr(codec, f"has_{name}")()]
"""The codecs whose libraries are installed: kafka-python needs them, kshim does not."""
RECORDS = [
    {"key": "a", "value": "1", "headers": [["h", "x"], ["h", None]], "timestamp_ms": 1795392986511},
    {"key": None, "value": None, "headers": [], "timestamp_ms": 5},
    {"key": {"base64": "AP8="}, "value": {"base64": "//8A"}, "headers": [["b", {"base64": "gA=="}]]},
    {"key": "", "value": "line\nend \u00e9 \U0001f600", "headers": [["", ""]], "timestamp_ms": 0},
]

KEPT = ("--set", "retention.ms=-1")
"""For a topic whose records have old timestamps: its server would delete them at the next look."""


def as_lines(records: Sequence[object]) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in records).encode()


def consumed(kshim: Kshim, *arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in kshim("consume", *arguments, "--json").splitlines()]


def without_place(record: dict[str, object]) -> dict[str, object]:
    return {name: record[name] for name in ("key", "value", "headers", "timestamp_ms")}


@pytest.mark.parametrize("compression", CODECS)
def test_json_comes_back_as_it_was(kshim: Kshim, topic: str, compression: str) -> None:
    kshim("topic", "create", topic, "-p", "1", *KEPT)
    records = [{**each, "timestamp_ms": each.get("timestamp_ms", 7)} for each in RECORDS]
    kshim("produce", topic, "--json", "-z", compression, stdin=as_lines(records))
    found = consumed(kshim, topic)
    assert [without_place(each) for each in found] == records
    assert [each["offset"] for each in found] == [0, 1, 2, 3]


def test_a_topic_is_copied_with_a_pipe(kshim: Kshim, topic: str) -> None:
    copy = f"{topic}-copy"
    kshim("topic", "create", topic, copy, "-p", "3")
    kshim("produce", topic, "-k", ":", stdin=b"".join(b"k%d:v%d\n" % (n, n) for n in range(500)))
    written = kshim("consume", topic, "--json")
    kshim("produce", copy, "--json", stdin=written.encode())

    def by_place(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
        names = ("partition", "offset", "timestamp_ms", "key", "value")
        return sorted(tuple(each[name] for name in names) for each in found)

    assert by_place(consumed(kshim, copy)) == by_place([json.loads(line) for line in written.splitlines()])


@pytest.mark.parametrize("compression", OF_KAFKA_PYTHON)
def test_kafka_python_reads_what_is_produced(kshim: Kshim, topic: str, compression: str) -> None:
    kshim("topic", "create", topic)
    lines = b"a:hello\nb:\xff\x00\nNULL:NULL\n"
    kshim("produce", topic, "-k", ":", "--null", "NULL", "-H", "source=test", "-z", compression, stdin=lines)
    consumer = new_consumer(kshim.bootstrap, topic)
    found = [next(consumer) for _ in range(3)]
    consumer.close()
    assert [(each.key, each.value) for each in found] == [(b"a", b"hello"), (b"b", b"\xff\x00"), (None, None)]
    assert {tuple(each.headers) for each in found} == {(("source", b"test"),)}
    assert all(abs(each.timestamp - time.time() * 1000) < 60_000 for each in found)


@pytest.mark.parametrize("compression", OF_KAFKA_PYTHON)
def test_what_kafka_python_produces_is_read(kshim: Kshim, topic: str, compression: str) -> None:
    kshim("topic", "create", topic, "-p", "2", *KEPT)
    producer = new_producer(kshim.bootstrap, compression_type=None if compression == "none" else compression)
    producer.send(topic, b"v", b"k", [("h", b"\x80")], partition=1, timestamp_ms=123).get(10)
    producer.close()
    assert consumed(kshim, topic) == [
        {
            **{"topic": topic, "partition": 1, "offset": 0, "timestamp_ms": 123},
            **{"key": "k", "value": "v", "headers": [["h", {"base64": "gA=="}]]},
        }
    ]


def test_keys_go_where_kafkas_clients_put_them(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "5")
    keys = [b"key-%d" % number for number in range(30)]
    kshim("produce", topic, "-k", ":", stdin=b"".join(key + b":kshim\n" for key in keys))
    producer = new_producer(kshim.bootstrap)
    for key in keys:
        producer.send(topic, b"other", key)
    producer.close()
    places: dict[object, set[object]] = {}
    for each in consumed(kshim, topic):
        places.setdefault(each["key"], set()).add(each["partition"])
    assert len(places) == 30
    assert all(len(some) == 1 for some in places.values())


# ---- where it begins and ends


def test_places(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "1", *KEPT)
    lines = [{"value": str(number), "timestamp_ms": 1000 * number} for number in range(10)]
    kshim("produce", topic, "--json", stdin=as_lines(lines))

    def values(*arguments: str) -> str:
        return "".join(kshim("consume", topic, *arguments).split())

    assert values() == "0123456789"
    assert values("--from", "7") == "789"
    assert values("--from", "-2") == "89"
    assert values("--from", "1970-01-01T00:00:04.5") == "56789"
    assert values("--from", "3", "--to", "1970-01-01T00:00:06") == "345"
    assert values("-n", "3") == "012"
    assert values("--from", "10") == ""
    assert values("--format", "%o%%") == "0%1%2%3%4%5%6%7%8%9%"
    assert kshim.refusal("consume", topic, "--from", "11") == f"no offset 11: {topic}-0 has 0 to 10"
    assert kshim.refusal("consume", topic, "-p", "1") == f"{topic} has the partitions 0 to 0, not 1"


def test_several_topics(kshim: Kshim, topic: str) -> None:
    others = [f"{topic}-a", f"{topic}-b"]
    for name in others:
        kshim("topic", "create", name)
        kshim("produce", name, stdin=name.encode())
    assert sorted(kshim("consume", *others).split()) == others


def test_follow_prints_records_as_they_come_and_ends_quietly(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic)
    kshim("produce", topic, stdin=b"before\n")
    running = kshim.begin("consume", topic, "--follow")
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline() == b"before\n"
    kshim("produce", topic, stdin=b"after\n")
    assert running.stdout.readline() == b"after\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, b"", b"")


def test_lines_are_sent_as_they_come(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic)
    running = kshim.begin("produce", topic)
    assert running.stdin is not None
    running.stdin.write(b"first\n")
    running.stdin.flush()
    wait_until(lambda: kshim("consume", topic) == "first\n", 30, lambda: "the first line")
    running.stdin.write(b"second")
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (0, b"", b"")
    assert kshim("consume", topic) == "first\nsecond\n"


def test_a_reader_that_has_enough_ends_it_quietly(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic)
    kshim("produce", topic, stdin=b"x" * 100 + b"\n" + b"y" * 100 + b"\n" + (b"z" * 99 + b"\n") * 20_000)
    running = kshim.begin("consume", topic)
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline() == b"x" * 100 + b"\n"
    running.stdout.close()
    assert (running.wait(20), running.stderr.read()) == (141, b"")


def test_transactions(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "-p", "1")
    producer = KafkaProducer(bootstrap_servers=kshim.bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value, end in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.send(topic, value).get(10)
        end()
    producer.begin_transaction()
    producer.send(topic, b"open").get(10)
    assert kshim("consume", topic).split() == ["committed", "aborted", "open"]
    assert kshim("consume", topic, "--isolation", "read_committed").split() == ["committed"]
    producer.abort_transaction()
    producer.close()


# ---- mistakes


def test_a_record_that_is_too_large_is_told_by_its_line(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "--set", "max.message.bytes=1000")
    done = kshim.run("produce", topic, stdin=b"a\n" + b"x" * 2000 + b"\nb\n")
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("kshim: line 2: MESSAGE_TOO_LARGE")
    assert kshim("consume", topic).split() == ["a", "b"]


def test_a_compacted_topic_takes_no_record_without_a_key(kshim: Kshim, topic: str) -> None:
    kshim("topic", "create", topic, "--set", "cleanup.policy=compact")
    done = kshim.run(
        "produce", topic, "--json", stdin=as_lines([{"key": k, "value": "v"} for k in ("a", None, "b")])
    )
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("kshim: line 2: INVALID_RECORD")
    assert [each["key"] for each in consumed(kshim, topic)] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "line"),
    [
        (
            ["-k", ":"],
            b"a:1\nb\n",
            "line 2: expected a key, ':' and a value; the lines before it",
        ),
        (["--json"], b'{"vlue": 1}\n', "line 1: unknown field 'vlue'; did you mean value?; the lines before"),
        (["-p", "9"], b"a\n", "line 1: partition 9: TOPIC has the partitions 0 to 1"),
        (["--json", "--key", "a"], b"", "--json has keys and nulls in its lines"),
        (["-H", "a"], b"", "--header a: expected NAME=VALUE"),
    ],
)
def test_mistakes_of_produce(kshim: Kshim, topic: str, arguments: list[str], stdin: bytes, line: str) -> None:
    kshim("topic", "create", topic, "-p", "2")
    told = kshim.refusal("produce", topic, *arguments, stdin=stdin)
    assert told.startswith(line.replace("TOPIC", topic))


def test_a_topic_is_created_only_if_asked(kshim: Kshim, topic: str) -> None:
    assert kshim.refusal("produce", topic, stdin=b"a").startswith(f"no topic {topic}")
    assert kshim.refusal("consume", topic).startswith(f"no topic {topic}")
    assert topic not in kshim("topic", "list", "--names").split()
    for value in (b"a", b"b"):
        kshim("produce", topic, "--create", stdin=value)
    assert sorted(kshim("consume", topic).split()) == ["a", "b"]
