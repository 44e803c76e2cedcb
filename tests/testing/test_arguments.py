"""A wrong argument is refused with a sentence that says what to write, before anything is sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kshim.testing import Cluster, Kshim, NewRecord, serving

NOBODY = Kshim(Path("/nonexistent"), 1, {})
"""No server runs: a call that sends something fails otherwise."""

WRONG: list[tuple[Callable[[], object], str]] = [
    (
        lambda: serving(properties={"num.partitions": 3}),
        "properties['num.partitions'] has to be a str, not an int: "
        "write {'num.partitions': '3'}, with quotes",
    ),
    (
        lambda: serving(properties={"auto.create.topics.enable": False}),
        "properties['auto.create.topics.enable'] has to be a str, not a bool: "
        "write {'auto.create.topics.enable': 'false'}, with quotes",
    ),
    (lambda: serving("3"), "brokers has to be an int, not a str: '3'"),
    (lambda: serving(0), "brokers has to be 1 or more, not 0"),
    (lambda: serving(tls="alice"), "tls has to be True or a list of names: write tls=['alice']"),
    (lambda: serving(users=["alice"]), "users has to be a dict, not a list: ['alice']"),
    (
        lambda: NOBODY.produce("t", "hello"),
        "values has to be a list of records, not one str: write ['hello']",
    ),
    (
        lambda: NOBODY.produce("t", b"hello"),
        "values has to be a list of records, not one bytes: write [b'hello']",
    ),
    (
        lambda: NOBODY.produce("t", {"key": "value"}),
        "values has to be a list of records, not a dict: for its pairs of key and value write "
        "list(….items()), for one record of JSON [json.dumps(…)]",
    ),
    (
        lambda: NOBODY.produce("t", [{"id": 1}]),
        "the value of a record has to be a str, bytes or None, not dict: {'id': 1}: "
        "json.dumps(…) makes a str of it",
    ),
    (lambda: NOBODY.produce("t", 5), "values has to be a list, not an int: write [5]"),
    (lambda: NOBODY.produce("t", None), "values has to be a list, not None: write [None]"),
    (
        lambda: NOBODY.produce("t", [("key", "value", "more")]),
        "a record has to be a value, or a pair of key and value, not ('key', 'value', 'more')",
    ),
    (
        lambda: NOBODY.produce("t", [NewRecord("v", headers={"h": 1})]),
        "the header 'h' of a record has to be a str, bytes or None, not int: 1",
    ),
    (
        lambda: NOBODY.produce("t", [NewRecord("v", headers=("h",))]),
        "a header of a record has to be a name, which is a str, and a value, not 'h'",
    ),
    (
        lambda: NOBODY.produce("t", [NewRecord("v", timestamp_ms=1.5)]),
        "the timestamp_ms of a record has to be an int or None, not float: 1.5",
    ),
    (
        lambda: NOBODY.produce("t", ["v"], compression="lz5"),
        "compression has to be one of none, gzip, snappy, lz4, zstd, not 'lz5'",
    ),
    (
        lambda: NOBODY.set_offsets("g", {"t1": 5}),
        "a key of offsets has to be a topic and a partition, not 't1': write {('t1', 0): 5}",
    ),
    (lambda: NOBODY.set_offsets("g", {("t1", 0): -1}), "offsets[('t1', 0)] has to be 0 or more, not -1"),
    (
        lambda: NOBODY.topic(replication_factor=3),
        "replication_factor is no config of a topic: write replicas=…",
    ),
    (lambda: NOBODY.topic(num_partitions=3), "num_partitions is no config of a topic: write partitions=…"),
    (
        lambda: NOBODY.create_topic("t", configs={"retention.ms": 5}),
        "configs['retention.ms'] has to be a str, not an int: write {'retention.ms': '5'}, with quotes",
    ),
    (
        lambda: NOBODY.delete_topics(["a", "b"]),
        "names are given one by one: write *['a', 'b'], with a star",
    ),
    (lambda: NOBODY.consume("t", "3"), "n has to be an int, not a str: '3'"),
    (lambda: NOBODY.consume(["t"]), "topic has to be a str, not a list: ['t']"),
    (lambda: NOBODY.wait_stable("g", timeout_s="5"), "timeout_s is a number of seconds, not a str: '5'"),
    (lambda: NOBODY.advance(seconds="5"), "seconds has to be a number, not a str: '5'"),
    (
        lambda: NOBODY.quota(producer_byte_rate=1),
        "say whom the quota limits: write user=…, client_id=… or ip=…",
    ),
    (
        lambda: NOBODY.quota(client_id="c", producer_byte_rate="1"),
        "producer_byte_rate has to be a number, not str: '1'",
    ),
    (
        lambda: Cluster("localhost").topics(),
        "'localhost' is no address of a broker: write HOST:PORT, such as 127.0.0.1:9092",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_wrong_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(sentence)}$"):
        call()


def test_python_itself_names_a_missing_argument() -> None:
    with pytest.raises(TypeError, match=r"produce\(\) missing 1 required positional argument: 'values'"):
        NOBODY.produce("t")  # type: ignore[call-arg]


def test_a_call_that_would_block_the_event_loop_says_what_to_write() -> None:
    async def story() -> None:
        NOBODY.produce("t", ["v"])

    expected = (
        "produce() would block the event loop that runs in this thread: "
        "write `await async_kshim.produce(…)`, with the fixture async_kshim or `async with serving()`"
    )
    with pytest.raises(RuntimeError, match=f"^{re.escape(expected)}$"):
        asyncio.run(story())


def test_a_server_that_would_block_the_event_loop_is_not_started() -> None:
    async def story() -> None:
        with serving():
            pass

    with pytest.raises(RuntimeError, match="write `async with serving"):
        asyncio.run(story())
