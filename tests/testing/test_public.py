"""`from kshim.testing import …` finds every public name, and imports nothing before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kshim import testing


def test_every_name_is_there() -> None:
    for name in testing.__all__:
        assert getattr(testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'served'"):
        _ = testing.served


def test_pytest_pays_nothing_for_the_plugin() -> None:
    code = "import sys, kshim.testing.plugin as p; print([m for m in sys.modules if m.startswith('schemas')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
