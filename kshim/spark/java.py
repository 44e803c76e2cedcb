"""Finds the Java that Spark would start, and checks that this Spark runs on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from kshim.spark.errors import SparkUnavailable

TIMEOUT_S: Final = 20
_DO: Final = "install Java 17, or set JAVA_HOME to where it is"


def java_command() -> str:
    """The path of the Java that Spark would start. Raises SparkUnavailable if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise SparkUnavailable(f"Spark needs Java: JAVA_HOME={home} has no bin/java; {_DO}")
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise SparkUnavailable(f"Spark needs Java: no java is on the PATH; {_DO}")
    return found


def java_version(java: str) -> int:
    """The version of a Java. Raises SparkUnavailable if `java -version` does not print it."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailable(f"Spark needs Java: {java} does not run: {error}; {_DO}") from error
    said = (done.stderr + done.stdout).strip()
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None:
        first = said.splitlines()[0] if said else f"nothing, and exits with status {done.returncode}"
        raise SparkUnavailable(f"Spark needs Java: {java} -version says {first}; {_DO}")
    return int(found[1])


def oldest_java(pyspark_version: str) -> int:
    """The oldest version of Java that this Spark runs on."""
    return 8 if pyspark_version.startswith("3.") else 17


def check_java(pyspark_version: str) -> int:
    """Return the version of Java.

    Raises SparkUnavailable if Java is missing, or this Spark does not run on it.
    """
    java = java_command()
    found, oldest = java_version(java), oldest_java(pyspark_version)
    if found < oldest:
        raise SparkUnavailable(
            f"Spark {pyspark_version} needs Java {oldest} or later, and {java} is Java {found}; {_DO}"
        )
    return found
