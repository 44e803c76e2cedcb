"""The tests of `integration/serve/projects` also pass against Apache Kafka, and those that need kshim are
skipped by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.support.projects import WITH_PYTEST, run
from integration.support.server import Server

NEEDS_OF = {
    "with_pytest": ("kshim.wait_for_rebalance: only kshim has it", "kshim.reset: would delete all topics"),
    "with_asyncio": ("kshim.fault: only kshim has it", "new_kshim: starts a server of its own"),
    "with_unittest": ("kshim.advance: only kshim has it",),
}


@pytest.fixture(scope="module")
def kafka(class_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "integration.apache_kafka"]
    server = Server(tmp_path_factory.mktemp("kafka") / "data", command=command).start()
    yield server.bootstrap
    server.stop()


@pytest.mark.parametrize(
    ("project", "needs", "workers"),
    [
        ("with_pytest", "confluent_kafka", "0"),
        ("with_asyncio", "aiokafka", "0"),
        ("with_asyncio", "aiokafka", "2"),
    ],
)
def test_with_pytest(kafka: str, project: str, needs: str, workers: str) -> None:
    pytest.importorskip(needs)
    done = run(project, *WITH_PYTEST, "-n", workers, "--kshim-bootstrap", kafka)
    assert "5 passed, 2 skipped" in done.stdout, done.stdout + done.stderr
    for reason in NEEDS_OF[project]:
        assert reason in done.stdout


def test_workers_do_not_share_topics_of_one_name(kafka: str) -> None:
    pytest.importorskip("confluent_kafka")
    done = run("with_pytest", *WITH_PYTEST, "-n", "2", "--kshim-bootstrap", kafka)
    assert "would share topic orders, prices; run without -n" in done.stdout
    assert "7 skipped" in done.stdout


def test_with_pytest_after_a_reset(kafka: str) -> None:
    pytest.importorskip("confluent_kafka")
    done = run("with_pytest", *WITH_PYTEST, "--kshim-bootstrap", kafka, "--kshim-may-reset")
    assert "6 passed, 1 skipped" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("runner", [("-m", "unittest", "-v"), WITH_PYTEST], ids=["unittest", "pytest"])
def test_with_unittest(kafka: str, runner: tuple[str, ...]) -> None:
    pytest.importorskip("confluent_kafka")
    given = {"KSHIM_TEST_BOOTSTRAP": kafka, "KSHIM_TEST_MAY_RESET": "1"}
    done = run("with_unittest", *runner, environment=given)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "OK (skipped=1)" in said or "6 passed, 1 skipped" in said
    for reason in NEEDS_OF["with_unittest"]:
        assert reason in said


def test_properties_that_the_cluster_does_not_have(kafka: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kshim): pass\n")
    given = ("--kshim-bootstrap", kafka, "--kshim-property", "num.partitions=7")
    done = run(tmp_path, *WITH_PYTEST, *given)
    assert "the tests need num.partitions=7, and the cluster has num.partitions=1" in done.stdout
    done = run(tmp_path, *WITH_PYTEST, "--kshim-bootstrap", kafka, "--kshim-brokers", "3")
    assert f"the tests need 3 brokers, and {kafka} has 1" in done.stdout
