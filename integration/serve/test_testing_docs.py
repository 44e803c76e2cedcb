"""The Python code on the pages about testing works; `integration/examples` runs that in other languages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from integration.support.readme import ROOT, python_blocks

pytestmark = pytest.mark.kshim_only("it starts kshim")

DOCS = ROOT / "docs"
YAML = re.compile(r"^```yaml\n(name:.*?)^```$", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 180


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python, which has to succeed."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def blocks(page: str, word: str) -> str:
    """The only block of the page that contains `word`."""
    (block,) = (block for block in python_blocks(DOCS / page) if word in block)
    return block


@pytest.mark.parametrize(
    ("page", "word", "passed"),
    [
        ("testing.md", "def test_it(kshim", "1 passed"),
        ("testing.md", "async def test_it(", "1 passed"),
        ("torture.md", "def worker(work", "1 passed"),
        ("replace-testcontainers.md", "def test_the_same", "1 passed"),
        ("github-actions.md", "def test_an_order", "1 passed"),
    ],
)
def test_with_pytest(tmp_path: Path, page: str, word: str, passed: str) -> None:
    (tmp_path / "test_it.py").write_text(blocks(page, word))
    assert passed in run_python("-m", "pytest", "-q", ".", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("page", "word", "printed"),
    [
        ("testing.md", "NewRecord(", "2 0 None b'c' (('trace', b'1'),)"),
        ("testing.md", "async with serving", "[b'a', b'b']"),
        ("testing.md", "kshim.fault(", "[b'first', b'second', b'second']"),
        ("testing.md", "def member(", "2 partitions moved quickly"),
        ("testing.md", "kshim.tls.client(", "[b'alice', b'bob']"),
        ("testing.md", "GUARDED", "nobody may write"),
        ("testing.md", "kshim.quota(", "waited for 1 s"),
        ("testing.md", "KshimTestCase", ""),
        ("testing.md", "serving(users=", ""),
        ("testing.md", "hold_time", "no session and no transaction times out at 2"),
        ("faults.md", "kshim.fault(", "the commit failed; 1 request was struck\nagain: b'first'"),
    ],
)
def test_without_pytest(tmp_path: Path, page: str, word: str, printed: str) -> None:
    done = run_python("-c", blocks(page, word), cwd=tmp_path)
    assert printed in done.stdout
    assert word != "KshimTestCase" or "Ran 2 tests" in done.stderr


def test_every_python_block_is_run() -> None:
    pages = ("testing.md", "replace-testcontainers.md", "github-actions.md", "faults.md")
    assert [len(python_blocks(DOCS / page)) for page in pages] == [12, 2, 1, 1]


def test_the_workflow_is_the_file() -> None:
    (workflow,) = YAML.findall((DOCS / "github-actions.md").read_text())
    assert workflow == (DOCS / "examples" / "tests.yml").read_text()
