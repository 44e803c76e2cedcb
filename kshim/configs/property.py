"""One row of a table of properties: a dataclass field with a parser, a meaning, and Kafka's default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any


def property_field(default: object, parse: Callable[[str], Any], doc: str, kafka_default: str = "") -> Any:
    """A dataclass field. kafka_default: Apache Kafka's default, if kshim's is another."""
    return field(default=default, metadata={"parse": parse, "doc": doc, "kafka_default": kafka_default})
