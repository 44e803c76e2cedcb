"""An upstream that stands still for a while: clients get errors after which they try again; nothing hangs."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

ANSWER_S = 30
"""A batch is given up after 10 s; the rest is for a busy machine."""


@pytest.fixture
def kafka(tmp_path: Path, class_path: str) -> Iterator[Server]:
    server = Server(tmp_path / "upstream", command=apache_kafka.COMMAND).start()
    yield server
    server.process.send_signal(signal.SIGCONT)
    server.kill()


def test_commits_fail_while_the_upstream_stands_still_and_go_on_after_that(
    kafka: Server, tmp_path: Path, topic: str
) -> None:
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    kshim = Server(tmp_path / "kshim", ["--upstream", kafka.bootstrap]).start()
    with Wire(kshim.host, kshim.port, timeout_s=ANSWER_S) as wire:
        wait_until(lambda: commit(wire, topic, 1) is ErrorCode.NONE, 30, kshim.report)
        kafka.process.send_signal(signal.SIGSTOP)
        refused = [commit(wire, topic, 2) for _ in range(3)]
        assert all(error.retriable for error in refused), refused
        began_s = time.monotonic()
        groups = run_to_end("groups", "--data-dir", str(kshim.data_dir), cwd=tmp_path, timeout_s=60)
        assert groups.returncode == 0
        assert time.monotonic() - began_s < ANSWER_S
        kafka.process.send_signal(signal.SIGCONT)
        wait_until(lambda: commit(wire, topic, 3) is ErrorCode.NONE, 60, kshim.report)
        assert committed(wire, topic) == 3
    log = "\n".join(kshim.log)
    assert "Traceback" not in log
    assert log.count("the upstream does not answer: ") == 1
    kshim.kill()


def commit(wire: Wire, topic: str, offset: int) -> ErrorCode:
    """Commit from outside the group."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=f"g-{topic}",
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
    )
    (answered,) = wire.ask(8, request).topics
    return ErrorCode(answered.partitions[0].error_code)


def committed(wire: Wire, topic: str) -> int:
    asked = OffsetFetchRequestGroup(group_id=f"g-{topic}", topics=None)
    (group,) = wire.ask(8, OffsetFetchRequest(groups=(asked,))).groups
    (found,) = group.topics
    offset: int = found.partitions[0].committed_offset
    return offset
