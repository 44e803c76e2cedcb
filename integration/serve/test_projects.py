"""Projects of seven tests, as users of kshim have them, with pytest, pytest-asyncio, unittest and xdist.

`integration/examples/test_projects_on_kafka.py` runs the same tests against Apache Kafka.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.support.projects import WITH_PYTEST, run

pytestmark = pytest.mark.kshim_only("it starts kshim")


@pytest.mark.parametrize(
    ("project", "needs", "workers"),
    [
        ("with_pytest", "confluent_kafka", "0"),
        ("with_pytest", "confluent_kafka", "2"),
        ("with_asyncio", "aiokafka", "0"),
    ],
)
def test_with_pytest(project: str, needs: str, workers: str) -> None:
    pytest.importorskip(needs)
    done = run(project, *WITH_PYTEST, "-n", workers)
    assert "7 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("runner", [("-m", "unittest"), WITH_PYTEST], ids=["unittest", "pytest"])
def test_with_unittest(runner: tuple[str, ...]) -> None:
    pytest.importorskip("confluent_kafka")
    done = run("with_unittest", *runner)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout or "Ran 7 tests" in done.stderr


TRIO = """
import pytest

@pytest.mark.anyio
async def test_it(async_kshim, kshim_topic):
    await async_kshim.produce(kshim_topic, ["a"])
    assert len(await async_kshim.consume(kshim_topic, 1)) == 1

@pytest.mark.anyio
async def test_blocking(kshim, kshim_topic):
    with pytest.raises(RuntimeError, match="would block the event loop"):
        kshim.produce(kshim_topic, ["a"])
"""


def test_with_anyio_on_both_loops(tmp_path: Path) -> None:
    pytest.importorskip("anyio")
    pytest.importorskip("trio")
    (tmp_path / "test_it.py").write_text(TRIO)
    done = run(tmp_path, *WITH_PYTEST)
    assert done.stdout.count("passed") == 1, done.stdout
    assert "4 passed" in done.stdout, done.stdout
