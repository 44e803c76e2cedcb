"""`kshim fault` and `kshim.testing`'s faults, as a user has them, with an unmodified client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.errors import CommitFailedError, KafkaError

from integration.serve.refusals import assert_refused
from integration.support.server import Server, run_to_end
from kshim.control.client import ControlError
from kshim.testing import Kshim, Refused, serving
from schemas.error_code import ErrorCode

pytestmark = pytest.mark.kshim_only("it is kshim's own command line")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("shared") / "data").start()
    yield server
    assert server.stop() == 0, server.report()


@pytest.fixture(scope="module")
def kit() -> Iterator[Kshim]:
    with serving() as kshim:
        yield kshim


def fault(server: Server, tmp_path: Path, *arguments: str) -> str:
    done = run_to_end("fault", *arguments, "--data-dir", str(server.data_dir), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_examples_of_the_help(shared: Server, tmp_path: Path) -> None:
    said = run_to_end("fault", "-h", cwd=tmp_path).stdout
    examples = [line.split()[2:] for line in said.splitlines() if line.startswith("    kshim fault ")]
    assert [each[0] for each in examples] == ["add", "add", "add", "list", "remove", "remove"]
    printed = [fault(shared, tmp_path, *each) for each in examples]
    assert printed[0] == "fault 1: error NOT_COORDINATOR for Heartbeat, group g (2 times)\n"
    assert (
        printed[1] == "fault 2: delay 500 ms for Fetch, client id slow (probability 0.2, seed 7, for 30 s)\n"
    )
    lines = printed[3].splitlines()
    assert lines[0].split() == ["Fault", "Does", "To", "When", "State", "Matched", "Struck"]
    assert lines[3].split() == ["3", "close", "before", "OffsetCommit", "always", "in", "force", "0", "0"]
    assert printed[4].startswith("removed fault 1: error NOT_COORDINATOR for Heartbeat, group g (2 times)")
    assert printed[5] == "removed: 2\n"
    assert fault(shared, tmp_path, "list") == "no faults\n"
    assert json.loads(fault(shared, tmp_path, "list", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add"], ["one of error, delay_ms, drop"]),
        (["add", "--error", "NOT_CORDINATOR"], ["NOT_CORDINATOR", "NOT_COORDINATOR"]),
        (["add", "--api", "Hartbeat", "--drop"], ["Hartbeat", "Heartbeat"]),
        (["add", "--api", "Fetch", "--group", "g", "--drop"], ["Fetch names no group", "Heartbeat"]),
        (["add", "--drop", "--for", "30"], ["'30'", "write 90s"]),
        (["add", "--drop", "--times", "0"], ["times=0", "from 1"]),
        (["remove", "99"], ["no fault 99"]),
        (["remove"], ["NUMBER", "--all"]),
        (["remove", "1", "--all"], ["NUMBER", "--all"]),
    ],
)
def test_what_is_refused(shared: Server, tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    assert_refused(run_to_end("fault", *arguments, "--data-dir", str(shared.data_dir), cwd=tmp_path), *said)


def test_a_consumer_meets_faults(kit: Kshim) -> None:
    """Its commit fails as the fault says; it joins again, and has the record again that it did not commit."""
    topic, group = kit.topic(), kit.group()
    kit.produce(topic, ["a", "b"])
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=kit.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
        heartbeat_interval_ms=100,
    )
    assert next(consumer).value == b"a"
    with (
        kit.fault("OffsetCommit", group=group, error="ILLEGAL_GENERATION", once=True) as fault,
        pytest.raises((CommitFailedError, KafkaError)),
    ):
        consumer.commit()
    assert [next(consumer).value for _ in range(2)] == [b"a", b"b"]
    assert kit.log.count(f"group {group}: generation ") >= 2
    with kit.fault("OffsetCommit", group=group, delay_ms=300) as fault:
        consumer.commit()
        assert fault.struck() == fault.matched() >= 1
    with pytest.raises(ControlError, match="is removed"):
        fault.struck()
    assert kit.offsets(group)[topic, 0] == 2
    events = [event["text"] for event in kit._ask("events", 0, 0)["events"] if event["group"] == group]
    assert any("(error ILLEGAL_GENERATION) strikes OffsetCommit" in text for text in events), events
    consumer.close()


def test_the_kit_s_own_requests_are_spared(kit: Kshim) -> None:
    topic = kit.topic()
    everybody = kit.fault("ListOffsets", error="NOT_LEADER_OR_FOLLOWER")
    assert kit.end_offsets(topic) == {(topic, 0): 0}
    with (
        kit.fault("ListOffsets", error="INVALID_REQUEST", client_id="kshim.testing") as kits,
        pytest.raises(Refused) as refused,
    ):
        kit.end_offsets(topic, timeout_s=1)
    assert refused.value.error_code is ErrorCode.INVALID_REQUEST
    assert everybody.struck() == 0
    kit.reset()
    with pytest.raises(ControlError, match="is removed"):
        everybody.struck()
    kits.__exit__(None, None, None)  # removed already


def test_faults_with_coroutines() -> None:
    async def run() -> None:
        async with serving() as kshim:
            topic = await kshim.topic()
            async with await kshim.fault(
                "Produce", close="after", client_id="kshim.testing", once=True
            ) as fault:
                await kshim.produce(topic, ["a"])
                assert await fault.struck() == await fault.matched() == 1
            assert [record.value for record in await kshim.consume(topic)] == [b"a", b"a"]
            other = await kshim.fault("Fetch", drop=True)
            await other.remove()

    asyncio.run(run())
