"""`kshim.testing`: a server for other projects' tests, and its pytest fixtures."""

from __future__ import annotations

import asyncio
import errno
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kafka import KafkaProducer

from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer, new_producer, read_all
from kshim.control.client import ControlError
from kshim.testing import NotStarted, serving

pytestmark = pytest.mark.kshim_only("it starts kshim")

FIXTURES = """
import pytest
from kafka import KafkaProducer
from kafka import KafkaConsumer, KafkaProducer

def test_one_for_all(kshim):
    producer = KafkaProducer(bootstrap_servers=kshim.bootstrap)
    assert producer.send("t", b"v").get(timeout=10).offset == 0
    producer.close()
    assert [record.value for record in kshim.consume("t", 1)] == [b"v"]

def test_a_clean_one(clean_kshim, kshim):
    assert clean_kshim is kshim
    assert kshim.topics() == []

@pytest.fixture(scope="session")
def kshim_properties():
    return {"num.partitions": "2"}

def test_names(kshim, kshim_topic, kshim_group):
    assert kshim.end_offsets(kshim_topic) == {(kshim_topic, 0): 0, (kshim_topic, 1): 0}
    assert kshim.offsets(kshim_group) == {}

def test_one_of_its_own(new_kshim):
    kshim = new_kshim(brokers=2, properties={"default.replication.factor": "2"})
    kshim.stop_broker(1)
    assert [b["state"] for b in kshim.describe()["brokers"]] == ["stopped", "running"]
    assert kshim.produce("t", ["after"]) == [(0, 0)]
"""

CASES = """
import unittest
from kshim.testing import KshimTestCase

class TestOne(KshimTestCase):
    kshim_properties = {"num.partitions": "3"}

    def test_first(self):
        self.assertEqual(self.kshim.topics(), [])
        self.assertEqual(self.kshim.produce("t", ["a", "b", "c"]), [(0, 0), (1, 0), (2, 0)])

    test_second = test_first

class TestOther(KshimTestCase, unittest.IsolatedAsyncioTestCase):
    kshim_brokers = 2

    async def test_it(self):
        await self.async_kshim.produce("t", ["a"])
        (record,) = await self.async_kshim.consume("t", 1)
        self.assertEqual(record.value, b"a")
"""


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_fixtures(tmp_path: Path, workers: str) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(FIXTURES)
    # the plugin is found by itself
    done = run_python("-m", "pytest", "-q", "-n", workers, "--dist", "loadfile", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_unittest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CASES)
    done = run_python("-W", "error", "-m", "unittest", "-v", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Ran 3 tests" in done.stderr


def test_with_coroutines() -> None:
    async def story() -> list[bytes | None]:
        async with serving() as kshim:
            topic = await kshim.topic()
            reading = asyncio.create_task(kshim.consume(topic, 2))
            await asyncio.gather(kshim.produce(topic, ["a"]), kshim.produce(topic, ["a"]))
            read = await reading
            await kshim.reset()
            assert await kshim.topics() == []
            return [record.value for record in read]

    assert asyncio.run(story()) == [b"a", b"a"]


def test_servers_go_with_the_process_that_started_them(tmp_path: Path) -> None:
    start = "kshim = serving().__enter__(); print(kshim.bootstrap, flush=True); input()"
    command = [sys.executable, "-c", f"from kshim.testing import serving; {start}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        socket.create_connection((host, int(port))).close()
        process.kill()

    def refuses() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == errno.ECONNREFUSED

    wait_until(refuses, 20, "the server's end")


def test_a_group_that_waits_names_the_member_that_is_late(topic: str) -> None:
    with serving() as kshim:
        kshim.create_topic(topic, 2)
        late = new_consumer(kshim.bootstrap, topic, group_id="g")
        late.poll(5000)
        late_id = kshim.wait_for_assignment("g").members[0].member_id
        early = new_consumer(kshim.bootstrap, topic, group_id="g")
        joining = threading.Thread(target=early.poll, args=(8000,))
        joining.start()
        wait_until(lambda: len(kshim.describe_group("g").members) == 2, 10, "the second member")
        with pytest.raises(TimeoutError) as caught:
            kshim.wait_for_assignment("g", members=2, timeout_s=0.2)
        said = str(caught.value)
        assert "group g is PreparingRebalance with 2 member(s)" in said
        assert f"have not joined since: {late_id}" in said
        assert "it rebalances because: a member joined: " in said
        assert "group g: generation 1 with 1 member(s) after" in said
        late.close()
        joining.join()
        early.close()


def test_data_and_addresses_outlive_a_kill(topic: str) -> None:
    with serving(brokers=2, properties={"num.partitions": "4"}) as kshim:
        before = kshim.bootstrap
        assert before.count(",") == 1
        producer = new_producer(before)
        producer.send(topic, b"kept", partition=3).get(timeout=10)
        producer.close()
        kshim.move_leader(topic, 3, to=2)
        kshim.kill()
        kshim.start()
        assert kshim.bootstrap == before
        (leader,) = (
            p["leader"] for p in kshim.describe()["partitions"] if (p["topic"], p["partition"]) == (topic, 3)
        )
        assert leader == 2
        assert [record.value for record in read_all(before, topic, 1)] == [b"kept"]
        kshim.move_coordinator("g", to=2)
        kshim.stop_broker(1)
        with pytest.raises(ControlError, match="broker 1 is stopped"):
            kshim.stop_broker(1)
        kshim.start_broker(1)
        assert kshim.log.count("INFO") >= 2


def test_an_unknown_property() -> None:
    with (
        pytest.raises(NotStarted, match=r"num\.partitons.*num\.partitions"),
        serving(properties={"num.partitons": "3"}),
    ):
        pass


def test_a_server_with_tls() -> None:
    with serving(brokers=2, properties={"ssl.client.auth": "required"}, tls=["alice", "CN=Bob,O=X"]) as kshim:
        topic = kshim.topic(partitions=2)
        for name in ("alice", "bob"):
            producer = KafkaProducer(**kshim.tls.client(name).kafka_python)
            for partition in (0, 1):
                producer.send(topic, name.encode(), partition=partition).get(timeout=20)
            producer.close()
        assert len(kshim.consume(topic, 4)) == 4
        assert len(kshim.tls.bootstrap.split(",")) == 2
        with pytest.raises(KeyError, match="carol"):
            kshim.tls.client("carol")
        kshim.kill()
        kshim.start()
        KafkaProducer(**kshim.tls.kafka_python).close()


def test_a_server_without_tls_says_how_to_get_it() -> None:
    with serving() as kshim, pytest.raises(AttributeError, match=r"start it with serving\(tls=True\)"):
        _ = kshim.tls
