"""`integration.support.member` with Apache's consumer: the same options, and the same lines."""

from __future__ import annotations

from pathlib import Path

from integration.support.java import compile_with

SOURCE = Path(__file__).with_name("Member.java")


def command(class_path: str) -> list[str]:
    """The command that runs the member, before its options. class_path: that of Apache Kafka."""
    classes = compile_with(class_path, SOURCE)
    return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, "Member"]
