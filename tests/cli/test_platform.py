"""On a platform without fork and fcntl, kshim says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kshim import platform_fault
from kshim.testing import Kshim, NotStarted

SAID = "kshim does not run on Windows, as it needs fork, fcntl and Unix sockets: use WSL 2 or a container"
AS_ON_WINDOWS = """
import sys
sys.modules["fcntl"] = sys.modules["resource"] = None
import kshim.cli.main as main
sys.platform = "win32"
sys.argv = ["kshim", "serve"]
main.main()
"""


def test_the_command_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"kshim: {SAID}\n")


def test_the_testing_kit_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NotStarted, match=f"^{SAID}$"):
        Kshim(tmp_path, 1, {}).start()


@pytest.mark.parametrize("platform", ["linux", "darwin", "freebsd14"])
def test_others_may_try(platform: str) -> None:
    assert platform_fault(platform) == ""
