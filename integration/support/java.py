"""Fetches the jars that a `pom.xml` names, compiles classes with them, and keeps both in the cache."""

from __future__ import annotations

from pathlib import Path

from integration.support.toolchain import kept, key_of, maven, need, run


def fetch_jars(pom: Path, *properties: str) -> str:
    """Return the class path with all dependencies of `pom`. properties: for the POM, as "name=value".

    Raises Missing, also if Java itself is missing.
    """
    need("java")
    name = f"{pom.parent.name}-{key_of([pom], *properties)}"

    def fetch(jars: Path) -> None:
        given = [f"-D{each}" for each in properties]
        maven("dependency:copy-dependencies", f"-DoutputDirectory={jars}", *given, f"-f={pom}", what=name)

    return f"{kept(f'jars-of-{name}', fetch)}/*"


def compile_with(class_path: str, *sources: Path) -> str:
    """Compile Java files. Return `class_path` with their classes before it. Raises Missing."""
    name = "-".join((sources[0].parent.name, key_of(sources, class_path)))

    def compiled(classes: Path) -> None:
        command = ["javac", "--release", "17", "-d", str(classes), "-cp", class_path, *map(str, sources)]
        run(command, cwd=sources[0].parent, what=name)

    return f"{kept(f'classes-of-{name}', compiled)}:{class_path}"
