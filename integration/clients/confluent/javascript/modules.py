"""The modules of a `package.json`, installed once with npm.

Confluent's client is partly C++. Where npm cannot download a compiled one, it compiles it, which takes some
minutes, a C++ compiler, and the headers of node, libcurl, OpenSSL, zlib and zstd.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from integration.support.toolchain import kept, need, run

PACKAGE = Path(__file__).with_name("package.json")


def fetch_modules(package: Path = PACKAGE, name: str = "confluent-javascript") -> Path:
    """Install what `package` names, if need be; returns the modules' directory. Raises Missing."""
    need("node", "npm")
    named = json.loads(package.read_text())
    versions = "-".join([*named["dependencies"].values(), *named.get("optionalDependencies", {}).values()])
    abi = run(["node", "--print", "process.versions.modules"], cwd=package.parent, what="its version").strip()

    def install(directory: Path) -> None:
        directory.mkdir()
        shutil.copy(package, directory)
        quietly = ("--no-audit", "--no-fund", "--no-package-lock", "--no-progress")
        dynamic = {"CKJS_LINKING": "dynamic"}
        run(["npm", "install", *quietly], cwd=directory, what=str(package), environment=dynamic)

    return kept(f"{name}-{versions}-abi{abi}", install) / "node_modules"
