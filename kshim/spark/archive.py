"""The archive of Spark's classes. Java maps it into memory instead of loading each class anew.

When a JVM exits, it can archive the classes that it has loaded (Java's application class-data sharing, JEP
350). Java ignores an archive that was made from other jars, or from jars in another place, so each
installation of PySpark needs an archive of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

FIRST_JAVA_WITH_ARCHIVES = 13
UNUSED_S = 30 * 24 * 3600
_QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


class Archive:
    """The archive for one installation of PySpark, one Java and one class path. It may not exist yet.

    cache: the directory of all archives. jars: the directory of Spark's jars. java: the version of Java.
    class_path: the jars before Spark's; Java ignores an archive that was made with others.
    """

    def __init__(self, cache: Path, jars: Path, java: int, class_path: Sequence[Path] = ()) -> None:
        installation = _digest(bytes(jars), *map(_state, class_path))
        self.path = cache / f"spark-{installation}-java-{java}.jsa"
        self.new_path = self.path.with_suffix(f".{os.getpid()}")
        """The path to which a JVM of this process writes a new archive."""
        self._jars = jars
        self._java = java

    def options(self) -> list[str]:
        """The JVM's options: use the archive if it is newer than the jars, else make one at exit."""
        if self.path.exists() and self.path.stat().st_mtime > self._jars.stat().st_mtime:
            self.path.touch()  # so that it does not count as unused
            return [*_QUIET, f"-XX:SharedArchiveFile={self.path}"]
        if self._java >= FIRST_JAVA_WITH_ARCHIVES:
            return [*_QUIET, f"-XX:ArchiveClassesAtExit={self.new_path}"]
        return []

    def drop_new(self) -> None:
        """Delete the archive that a JVM of this process has written, unless it was kept."""
        self.new_path.unlink(missing_ok=True)

    def keep_new(self) -> None:
        """Use the new archive from now on. Call it after the JVM has exited.

        Deletes archives that were not used for UNUSED_S, and those that killed JVMs have left behind.
        """
        if not self.new_path.exists():
            return
        self.new_path.replace(self.path)
        for archive in self.path.parent.glob("spark-*-java-*"):
            with contextlib.suppress(FileNotFoundError):  # another session was first
                if archive.stat().st_mtime < time.time() - UNUSED_S:
                    archive.unlink()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _state(jar: Path) -> bytes:
    """The properties of a jar that Java compares with the archive: path, size and time."""
    found = jar.stat()
    return b"%s %d %d" % (bytes(jar), found.st_size, found.st_mtime_ns)
