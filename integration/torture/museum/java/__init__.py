"""Programs with kafka-clients, in Java: `Museum.java` names them."""

from __future__ import annotations

from pathlib import Path

from integration.support.java import compile_with, fetch_jars

HERE = Path(__file__).parent
OPTIONS = (
    *("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),  # for a quick start
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def command(name: str) -> list[str]:
    """The command of a program. Raises Missing."""
    classes = compile_with(fetch_jars(HERE / "pom.xml"), *sorted(HERE.glob("*.java")))
    return ["java", *OPTIONS, "-cp", classes, "Museum", name]
