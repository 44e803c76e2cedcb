"""A start imports only what it needs: imports take most of its time."""

import subprocess
import sys

import pytest

START = """
import dataclasses, os, sys
from kshim.cli import running
from kshim.cli.main import main

def ready(*_, **__):
    os.write(1, " ".join((*sys.modules, *map("dataclass:{}".format, made))).encode())
    os._exit(0)

made, process_class = [], dataclasses._process_class

def noting(cls, *arguments):
    made.append(f"{cls.__module__}.{cls.__name__}")
    return process_class(cls, *arguments)

dataclasses._process_class = noting

running.print = ready
sys.argv = ["kshim", "serve", "--listen", "127.0.0.1:0", "--data-dir", sys.argv[1]]
main()
"""
"""Prints the modules that a server has imported when it is ready, and the dataclasses that were made."""
LIBRARIES = {
    *("attr", "attrs", "click", "construct", "lmdb", "twisted", "zope"),
    *("constantly", "incremental", "typing_extensions"),
}
"""The libraries that a server needs before it is ready; Twisted needs those of the last line."""
ROOMS = {
    *("answering", "api", "authentication", "callers", "cli", "cluster", "configs", "control"),
    *("coordination", "fetching", "network", "producing", "quotas", "recorder", "server", "storage", "turns"),
}
HEAVY = {
    "OpenSSL and ciphers": {"ssl", "hashlib", "_hashlib", "hmac", "secrets"},
    "HTTP and mail": {"http.client", "http.cookiejar", "urllib.request", "email", "xml"},
    "other ways to wait": {"asyncio", "concurrent.futures", "multiprocessing", "subprocess"},
    "debugger, temporary files, archives": {"pdb", "unittest", "tempfile", "shutil", "zipfile", "tarfile"},
}
"""Modules of Python's own that a start does without. Each takes 1 to 30 ms."""
MOST_OWN_MODULES = 330
"""A module of ours takes about a third of a millisecond."""
MOST_DATACLASSES = 45
"""A dataclass takes as long as two modules to make, if it is frozen. A NamedTuple takes a sixth of that."""
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


def run(code: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return run(START, str(tmp_path_factory.mktemp("start") / "data"))


@pytest.fixture(scope="module")
def imported(started: list[str]) -> list[str]:
    return [name for name in started if ":" not in name]


def test_only_these_libraries_are_imported_before_a_server_is_ready(imported: list[str]) -> None:
    standard = {*sys.stdlib_module_names, *sys.builtin_module_names, "__main__", "kshim", "schemas"}
    found = {name.partition(".")[0] for name in imported} - standard
    assert {name for name in found if not name.startswith("_")} <= LIBRARIES
    assert {name.split(".")[1] for name in imported if name.startswith("kshim.")} <= ROOMS


@pytest.mark.parametrize("what", HEAVY)
def test_heavy_modules_are_imported_when_they_are_needed(imported: list[str], what: str) -> None:
    assert not HEAVY[what] & set(imported)


def test_a_start_imports_a_bounded_number_of_our_modules(imported: list[str]) -> None:
    ours = [name for name in imported if name.startswith(("kshim", "schemas"))]
    assert len(ours) <= MOST_OWN_MODULES


def test_a_start_makes_a_bounded_number_of_dataclasses(started: list[str]) -> None:
    made = [name for name in started if name.startswith(("dataclass:kshim", "dataclass:schemas"))]
    assert 0 < len(made) <= MOST_DATACLASSES


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


def test_what_was_left_out_can_be_imported_later() -> None:
    assert run(LATER) == ["CookieJar", "done"]


def test_another_version_of_twisted_may_import_more_of_asyncio() -> None:
    assert run(MORE) == ["Queue", "True", "done"]
