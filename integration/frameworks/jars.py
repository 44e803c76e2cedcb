"""The jars that a `pom.xml` names, and classes compiled with them, kept in the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from integration.support.toolchain import kept, maven, need, run


def fetch_jars(pom: Path) -> str:
    """The class path of all that `pom` depends on. Raises Missing."""
    need("java")
    name = f"{pom.parent.name}-{_key(pom)}"

    def fetch(jars: Path) -> None:
        maven("dependency:copy-dependencies", f"-DoutputDirectory={jars}", f"-f={pom}", what=name)

    return f"{kept(f'jars-of-{name}', fetch)}/*"


def compile_with(class_path: str, source: Path) -> str:
    """`class_path` with the classes of one Java file in front of it. Raises Missing."""

    def compiled(classes: Path) -> None:
        command = ["javac", "-d", str(classes), "-cp", class_path, str(source)]
        run(command, cwd=source.parent, what=source.name)

    classes = kept(f"classes-of-{source.stem}-{_key(source, class_path)}", compiled)
    return f"{classes}:{class_path}"


def _key(path: Path, more: str = "") -> str:
    return hashlib.sha256(path.read_bytes() + more.encode()).hexdigest()[:16]
