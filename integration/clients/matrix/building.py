"""Makes the drivers that are not Python ready to run, once, in the cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from integration.clients.confluent.javascript.modules import fetch_modules
from integration.support.java import compile_with, fetch_jars
from integration.support.toolchain import cache_dir, kept, key_of, need, run

DRIVERS = Path(__file__).with_name("drivers")
GO_LINES = "golines"
"""What the drivers in Go share."""
JAVA_OPTIONS = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"),  # for a quick start
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

Command = Callable[[], Sequence[str]]
"""The command line of a driver, made ready to run. Raises Missing."""


def node(name: str) -> Command:
    """Installs the modules of `package.json` beside the driver. One of them may be another Node, which then
    runs it."""
    directory = DRIVERS / name

    def command() -> Sequence[str]:
        modules = fetch_modules(directory / "package.json", name)
        own = modules / ".bin" / "node"
        return (
            "env",
            f"NODE_PATH={modules}",
            str(own) if own.exists() else "node",
            str(directory / "driver.js"),
        )

    return command


def go(module: str) -> Command:
    """Builds the driver when its sources have changed."""

    def build(target: Path) -> None:
        run(["go", "build", "-p", "1", "-o", str(target), "."], cwd=DRIVERS / module, what=module)

    def command() -> Sequence[str]:
        need("go")
        return (str(kept(f"driver-{module}-{_key(module, GO_LINES)}", build)),)

    return command


def cargo(name: str) -> Command:
    """Builds the driver when its sources have changed.

    What cargo has compiled stays in the cache, so that it compiles the libraries, which takes minutes, once.
    """

    def build(target: Path) -> None:
        compiled = cache_dir() / "cargo"
        sources = target.with_name("sources")
        shutil.copytree(DRIVERS / name, sources)  # cargo writes a lock file beside them
        run(["cargo", "build", "--release", "--target-dir", str(compiled)], cwd=sources, what=name)
        shutil.copy(compiled / "release" / f"driver-{name}", target)

    def command() -> Sequence[str]:
        need("cargo")
        return (str(kept(f"driver-{name}-{_key(name, f'{name}/src')}", build)),)

    return command


def java(version: str, *versions: str) -> Command:
    """Compiles the driver with that version of the client; `versions`: the folders of what differs by it."""
    directory = DRIVERS / "java"

    def command() -> Sequence[str]:
        jars = fetch_jars(directory / "pom.xml", f"kafka.version={version}")
        folders = (directory, *(directory / each for each in versions or ("since_2_5", "before_4_0")))
        sources = sorted(path for folder in folders for path in folder.glob("*.java"))
        return ("java", *JAVA_OPTIONS, "-cp", compile_with(jars, *sources), "Main")

    return command


def _key(*directories: str) -> str:
    """A key of all sources in these directories."""
    return key_of(path for each in directories for path in (DRIVERS / each).glob("*.*"))
