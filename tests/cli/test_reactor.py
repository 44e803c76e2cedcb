"""A start imports only what it needs: imports take most of its time."""

import subprocess
import sys

import pytest

START = """
import sys
from kshim.cli.reactor import import_reactor
from kshim.cli import main as cli
from kshim.configs.reading import new_config
import_reactor()
import kshim.server.server, kshim.server.local, kshim.storage.embedded
print(*sys.modules)
"""
LATER = """
from kshim.cli.reactor import import_reactor
import_reactor()
import asyncio, http.cookiejar
print(http.cookiejar.CookieJar.__name__, asyncio.run(asyncio.sleep(0, "done")))
"""
MORE = """
from kshim.cli.reactor import without_unused
with without_unused():
    from asyncio import Queue, iscoroutine
import asyncio
print(Queue.__name__, asyncio.Queue is Queue, asyncio.run(asyncio.sleep(0, "done")))
"""


def run(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def imported() -> list[str]:
    return run(START)


def test_an_api_is_imported_when_it_is_first_asked_for(imported: list[str]) -> None:
    assert {"kshim.network.dispatch", "schemas.registry"} <= set(imported)
    for name in ("create_acls", "describe_configs", "produce", "metadata"):
        assert not {f"schemas.messages.{name}", f"kshim.api.{name}"} & set(imported)


def test_nothing_is_imported_that_only_other_commands_need(imported: list[str]) -> None:
    rich, kafka = "rich", "kafka"
    commands = ("kshim.demo", "kshim.check", "kshim.cli.cluster", "kshim.spark")
    assert not {rich, kafka, *commands} & set(imported)


def test_what_matches_patterns_is_imported_with_the_first_pattern(imported: list[str]) -> None:
    assert "re2" not in imported
    without = run("import sys; from kshim.coordination.patterns import Matcher;print(*sys.modules)")
    assert "re2" not in without


def test_twisted_comes_without_tls_http_and_asyncio(imported: list[str]) -> None:
    assert "twisted.internet.tcp" in imported
    assert not {"OpenSSL", "http.cookiejar", "urllib.request", "email", "asyncio", "ssl"} & set(imported)


def test_what_was_left_out_can_be_imported_later() -> None:
    assert run(LATER) == ["CookieJar", "done"]


def test_another_version_of_twisted_may_import_more_of_asyncio() -> None:
    assert run(MORE) == ["Queue", "True", "done"]
