"""Transactions of Apache's own clients, which know transaction.version 2, and of its transactions tool."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from integration.java.tool import Tool, run_to_end
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server

COUNT = 3_000
PATIENCE_S = 60


def send_all(server: Server, topic: str, values: list[bytes]) -> None:
    producer = new_producer(server.bootstrap)
    for future in [producer.send(topic, value) for value in values]:
        future.get(timeout=PATIENCE_S)
    producer.close()


def read(server: Server, topic: str, count: int, isolation_level: str) -> list[bytes]:
    """At least `count` values, and those that came with them."""
    consumer: Any = new_consumer(server.bootstrap, topic, isolation_level=isolation_level)
    values: list[bytes] = []

    def all_read() -> bool:
        polled = [record.value for records in consumer.poll(500).values() for record in records]
        values.extend(polled)
        return len(values) >= count and not polled

    wait_until(all_read, PATIENCE_S, lambda: f"{count} values, of which there are {len(values)}")
    consumer.close()
    return values


@pytest.mark.parametrize("how", [(), ("--group-mode", "--use-group-metadata")], ids=["assigned", "group"])
def test_a_copier_loses_nothing_and_repeats_nothing_though_the_server_is_killed(
    own_server: Server, topic: str, run_tool: Callable[..., Tool], how: tuple[str, ...]
) -> None:
    """Apache's copier also aborts some of its transactions on purpose."""
    server, copies = own_server, f"{topic}-copies"
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, 1)
    admin.create_topic(copies, 1)
    values = [b"%04d" % number for number in range(COUNT)]
    send_all(server, topic, values)
    copier = run_tool(
        "TransactionalMessageCopier",
        *("--broker-list", server.bootstrap, "--input-topic", topic, "--input-partition", "0"),
        *("--output-topic", copies, "--transactional-id", "copier", "--consumer-group", "copiers"),
        *("--max-messages", str(COUNT), "--transaction-size", "20", "--enable-random-aborts", *how),
    )

    def processed() -> int:
        return max((fact["totalProcessed"] for _, fact in copier.said if "totalProcessed" in fact), default=0)

    for done in (COUNT // 4, COUNT // 2):
        wait_until(lambda: processed() >= done, PATIENCE_S, f"{done} copies")  # noqa: B023
        server.kill()
        server.start()
    wait_until(lambda: processed() >= COUNT, PATIENCE_S, lambda: f"{COUNT} copies: {copier.said[-1:]}")
    assert sorted(read(server, copies, COUNT, "read_committed")) == values
    assert len(read(server, copies, COUNT, "read_uncommitted")) > COUNT  # some were aborted
    admin.close()


def test_the_tool_lists_describes_and_ends_transactions(
    server: Server, admin: Admin, class_path: str
) -> None:
    topic, transactional_id = f"topic-{uuid.uuid4()}", f"tx-{uuid.uuid4()}"
    admin.create_topic(topic, 1)
    producer: Any = new_producer(server.bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open").get(timeout=PATIENCE_S)
    ask = partial(run_to_end, class_path, "TransactionsCommand", "--bootstrap-server", server.bootstrap)

    status, text = ask("list")
    assert status == 0, text
    assert re.search(rf"{transactional_id}\s+1\s+\d+\s+Ongoing", text)
    status, text = ask("describe", "--transactional-id", transactional_id)
    assert status == 0, text
    assert re.search(rf"1\s+{transactional_id}\s+\d+\s+0\s+Ongoing\s+\d+\s+\d+\s+\d+\s+{topic}-0", text)
    status, text = ask("describe-producers", "--topic", topic, "--partition", "0")
    assert status == 0, text
    assert re.search(r"\d+\s+0\s+-1\s+0\s+\d+\s+0\s", text)
    status, text = ask("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    assert status == 0, text
    status, text = ask("forceTerminateTransaction", "--transactionalId", transactional_id)
    assert status == 0, text
    status, text = ask("describe", "--transactional-id", transactional_id)
    assert "Ongoing" not in text
    assert read(server, topic, 0, "read_committed") == []
    producer.close(timeout=0)
