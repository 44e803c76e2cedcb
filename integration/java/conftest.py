"""Apache Kafka's jars, and processes that run their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.java.tool import Tool


@pytest.fixture
def run_tool(class_path: str, tmp_path: Path) -> Iterator[Callable[..., Tool]]:
    """Starts tools of `org.apache.kafka.tools`; all end with the test."""
    tools: list[Tool] = []

    def run(name: str, *options: str) -> Tool:
        tool = Tool(class_path, name, options, tmp_path / f"{name}{len(tools)}.log")
        tools.append(tool)
        return tool

    yield run
    for tool in tools:
        tool.end()
