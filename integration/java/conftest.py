"""Apache Kafka's jars, and the processes that run their classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.apache_kafka.jars import fetch_class_path
from integration.java.tool import Tool
from integration.maven import JarsMissing


@pytest.fixture(scope="session")
def class_path() -> str:
    """What is missing on this machine is an error in CI, a skip elsewhere."""
    try:
        return fetch_class_path()
    except JarsMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Apache's clients cannot run: {error}")


@pytest.fixture
def run_tool(class_path: str, tmp_path: Path) -> Iterator[Callable[..., Tool]]:
    """Starts one of `org.apache.kafka.tools`; all are ended with the test."""
    tools: list[Tool] = []

    def run(name: str, *options: str) -> Tool:
        tool = Tool(class_path, name, options, tmp_path / f"{name}{len(tools)}.log")
        tools.append(tool)
        return tool

    yield run
    for tool in tools:
        tool.end()
