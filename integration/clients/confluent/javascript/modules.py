"""The modules of a `package.json`, installed once with npm, into the same cache as the jars.

Confluent's client is partly C++. Where npm cannot download a compiled one, it compiles it, which takes some
minutes, a C++ compiler, and the headers of node, libcurl, OpenSSL, zlib and zstd.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from integration.support.maven import cache_dir

PACKAGE = Path(__file__).with_name("package.json")
INSTALL_TIMEOUT_S = 1800


class NodeMissing(Exception):
    """The client cannot run; str() says why."""


def fetch_modules(package: Path = PACKAGE, name: str = "confluent-javascript") -> Path:
    """Install what `package` names, if need be; returns the modules' directory. Raises NodeMissing."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise NodeMissing("node and npm are not installed")
    named = json.loads(package.read_text())
    versions = "-".join([*named["dependencies"].values(), *named.get("optionalDependencies", {}).values()])
    abi = subprocess.run(
        ["node", "--print", "process.versions.modules"], capture_output=True, text=True, check=True
    ).stdout.strip()
    modules = cache_dir() / f"{name}-{versions}-abi{abi}"
    if not modules.exists():
        _install(package, modules)
    return modules / "node_modules"


def _install(package: Path, modules: Path) -> None:
    """Install into a temporary directory next to `modules`, so that `modules` exists only when it is
    complete."""
    with tempfile.TemporaryDirectory(dir=modules.parent) as directory:
        shutil.copy(package, directory)
        try:
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--no-progress"],
                cwd=directory,
                env={**os.environ, "CKJS_LINKING": "dynamic"},
                capture_output=True,
                text=True,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NodeMissing(f"npm did not install {package} in {INSTALL_TIMEOUT_S} s") from None
        if done.returncode != 0:
            raise NodeMissing(f"npm cannot install {package}:\n{done.stderr[-2000:]}")
        os.rename(directory, modules)
        Path(directory).mkdir()  # TemporaryDirectory wants to remove it
