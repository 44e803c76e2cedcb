"""Time that tests move ahead or hold: what real clients see, and what is gone then."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from integration.serve.polling import polling
from integration.serve.refusals import assert_refused
from integration.support.awaiting import wait_until
from integration.support.server import Server, run_to_end
from kshim.control.client import ask
from kshim.testing import Kshim, Refused, serving

pytestmark = pytest.mark.kshim_only("it steers kshim's time")

SESSION_MS = 300_000
CONSUMER = f"""
import sys
from kafka import KafkaConsumer
consumer = KafkaConsumer(
    sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[3], session_timeout_ms={SESSION_MS},
    max_poll_interval_ms={SESSION_MS}, request_timeout_ms={SESSION_MS + 5000},
)
while True:
    consumer.poll(1000)
"""


@pytest.fixture
def kshim() -> Iterator[Kshim]:
    """For one test: its time is not that of the others."""
    with serving() as kshim:
        yield kshim


@pytest.fixture
def new_process(kshim: Kshim) -> Iterator[Callable[[str, str], subprocess.Popen[bytes]]]:
    """Starts a consumer that a test can kill."""
    started: list[subprocess.Popen[bytes]] = []

    def new(topic: str, group: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CONSUMER, kshim.bootstrap, topic, group]
        started.append(subprocess.Popen(command))
        return started[-1]

    yield new
    for process in started:
        process.kill()
        process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


# ---- sessions


def test_a_killed_consumer_is_missed_and_a_connected_one_is_not(
    kshim: Kshim, new_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    topic, group = kshim.topic(partitions=2), kshim.group()
    dies = new_process(topic, group)
    (dead,) = kshim.wait_for_assignment(group, 1).members
    with polling(kshim.bootstrap, topic, group, session_timeout_ms=SESSION_MS):
        kshim.wait_for_assignment(group, 2)
        kill(dies)
        began = time.monotonic()
        kshim.advance(minutes=6)
        (stays,) = kshim.describe_group(group).members
        assert stays.member_id != dead.member_id
        (still,) = kshim.wait_for_assignment(group, 1).members
        assert still.member_id == stays.member_id
        assert len(still.partitions) == 2
        assert time.monotonic() - began < 60, "it took as long as it would have taken"
        assert f"a member's session expired: {dead.member_id}" in kshim.log


def test_a_silent_client_is_missed_as_well(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    with polling(kshim.bootstrap, topic, group, session_timeout_ms=SESSION_MS):
        (before,) = kshim.wait_for_assignment(group, 1).members
        kshim.advance(seconds=SESSION_MS / 1000 - 10, silent=True)
        assert [member.member_id for member in kshim.describe_group(group).members] == [before.member_id]
        kshim.advance(seconds=SESSION_MS / 1000 + 1, silent=True)
        assert f"a member's session expired: {before.member_id}" in kshim.log


def test_while_time_is_held_nobody_is_missed_and_groups_work(
    kshim: Kshim, new_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    topic, group = kshim.topic(partitions=2), kshim.group()
    with kshim.hold_time():
        held = kshim.now()
        with polling(kshim.bootstrap, topic, group, session_timeout_ms=SESSION_MS):
            kshim.wait_for_assignment(group, 1)
            dies = new_process(topic, group)
            kshim.wait_for_assignment(group, 2)
            kill(dies)
            assert kshim.now() == held
            kshim.advance(minutes=4)
            assert len(kshim.describe_group(group).members) == 2
    kshim.advance(minutes=2)
    assert not kshim.describe_group(group).members


def test_reset_lets_time_go_on(kshim: Kshim) -> None:
    held = kshim.hold_time()
    held.__enter__()
    before = kshim.now()
    kshim.reset()
    wait_until(lambda: kshim.now() > before, 5, "time to go on")
    held.__exit__(None, None, None)


def test_with_asyncio() -> None:
    async def steer() -> None:
        async with serving() as kshim, kshim.hold_time():
            before = await kshim.now()
            assert await kshim.advance(minutes=5) == before + timedelta(minutes=5)

    asyncio.run(steer())


# ---- what expires


def test_a_transaction_times_out(kshim: Kshim) -> None:
    topic = kshim.topic()
    producer = KafkaProducer(
        bootstrap_servers=kshim.bootstrap, transactional_id="t", transaction_timeout_ms=60_000
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"lost").get(timeout=10)
    kshim.produce(topic, ["kept"])
    with pytest.raises(TimeoutError):
        kshim.consume(topic, 1, committed_only=True, timeout_s=0.2)
    kshim.advance(minutes=2)
    assert [record.value for record in kshim.consume(topic, 1, committed_only=True)] == [b"kept"]
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    with suppress(KafkaError):
        producer.close(timeout=1)


def test_offsets_expire_and_then_their_group(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    kshim.produce(topic, ["a"])
    consumer = KafkaConsumer(
        topic, bootstrap_servers=kshim.bootstrap, group_id=group, auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"a"
    consumer.close()
    kshim.advance(days=6)
    assert kshim.offsets(group) == {(topic, 0): 1}
    kshim.advance(days=2)
    assert kshim.offsets(group) == {}
    assert kshim.groups() == []


def test_old_records_are_removed_and_new_ones_have_the_new_time(kshim: Kshim) -> None:
    topic = kshim.topic(retention_ms=3_600_000, message_timestamp_type="LogAppendTime")
    kshim.produce(topic, ["old"])
    kshim.advance(hours=2)

    def is_gone() -> bool:
        with suppress(Refused):  # it goes between two questions
            return kshim.consume(topic) == []
        return False

    wait_until(is_gone, 10, "the old record to go")
    kshim.produce(topic, ["new"])
    (new,) = kshim.consume(topic, 1)
    assert abs(new.timestamp_ms / 1000 - kshim.now().timestamp()) < 60
    assert new.timestamp_ms / 1000 > time.time() + 3600


def test_events_of_groups_have_the_servers_time(kshim: Kshim) -> None:
    topic, group = kshim.topic(), kshim.group()
    kshim.advance(days=1)
    with polling(kshim.bootstrap, topic, group):
        kshim.wait_for_assignment(group, 1)
    events = ask(kshim._control, "events", 0, 0)["events"]
    assert events
    assert all(abs(event["at_ms"] / 1000 - kshim.now().timestamp()) < 60 for event in events)


# ---- the command


def test_the_command(new_server: Callable[..., Server]) -> None:
    server = new_server().start()

    def clock(*arguments: str) -> str:
        done = run_to_end("clock", *arguments, "--data-dir", str(server.data_dir), cwd=server.data_dir)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert clock("now").endswith(" UTC\n")
    ahead = clock("advance", "1d2h3m4s500ms")
    assert ahead.endswith(" UTC, 1 day, 2:03:04.500000 ahead of the machine's clock\n")
    held = clock("hold")
    assert held.endswith(", held\n")
    assert clock("now")[:19] == held[:19]
    assert not clock("resume").endswith(", held\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["advance", "soon"], ["'soon' is no duration", "5m"]),
        (["advance", "5"], ["'5' is no duration", "5m"]),
        (["advance", "-5m"], ["-5"]),
        (["advance"], ["DURATION"]),
        (["now"], ["no server listens", "--data-dir"]),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    assert_refused(run_to_end("clock", *arguments, cwd=tmp_path), *said)
