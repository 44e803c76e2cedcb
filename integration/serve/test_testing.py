"""`kshim.testing`: a server for other projects' tests, and its pytest fixtures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration.support.clients import new_producer, read_all
from kshim.control.client import ControlError
from kshim.testing.server import NotStarted, serving

pytestmark = pytest.mark.kshim_only("it starts kshim")

TESTS = """
from kafka import KafkaConsumer, KafkaProducer

def test_one_for_all(kshim):
    producer = KafkaProducer(bootstrap_servers=kshim.bootstrap)
    assert producer.send("t", b"v").get(timeout=10).offset == 0
    producer.close()

def test_the_same_again(kshim):
    assert len(kshim.describe()["brokers"]) == 1
    assert "t" in {p["topic"] for p in kshim.describe()["partitions"]}

def test_one_of_its_own(new_kshim):
    kshim = new_kshim(brokers=2, properties={"default.replication.factor": "2"})
    kshim.stop_broker(1)
    assert [b["state"] for b in kshim.describe()["brokers"]] == ["stopped", "running"]
"""


def test_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    pytest_run = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]  # the plugin is found by itself
    done = subprocess.run(pytest_run, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


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
