"""Only pytest imports a test module. What several of them need is a module with a name of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "docs", "integration", "kshim", "schemas", "tests")


def imports(source: str) -> Iterator[str]:
    """The dotted names that a module imports anywhere, inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{each.name}" for each in node.names)


def imports_of_tests(source: str) -> list[str]:
    return [name for name in imports(source) if any(part.startswith("test_") for part in name.split("."))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_imports_a_test_module(folder: str) -> None:
    sources = {path: path.read_text() for path in (ROOT / folder).rglob("*.py")}
    assert sources
    found = {str(path.relative_to(ROOT)): imports_of_tests(source) for path, source in sources.items()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import tests.api.test_fetch",
        "from tests.api.test_fetch import request",
        "from tests.api import harness, test_fetch as fetches",
        "from . import test_fetch",
        "from .test_fetch import request",
        "def lazily():\n    from tests.api.test_fetch import (\n        request,\n    )",
    ],
)
def test_an_import_of_a_test_module_is_found(source: str) -> None:
    assert imports_of_tests(source)


def test_other_imports_are_allowed() -> None:
    assert not imports_of_tests("from kshim.testing import Cluster\nfrom tests.api.fetches import request")
