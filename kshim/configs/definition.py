"""One config: its type, its default and what is legal, with faults told in Kafka's words.

A config is text wherever it is kept or sent; `parse` says what a text means, `canonical` how Kafka spells
that again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kshim.configs import java

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_LIMITS = {"SHORT": 2**15 - 1, "INT": INT_MAX, "LONG": LONG_MAX}

Check = Callable[[str, Any], str]
"""What is wrong with a parsed value of the config of that name; "" if nothing."""


class ConfigType(IntEnum):
    """The types of DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


def any_value(name: str, value: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One config. default: None where Kafka's is null. repeats: its list may have an item twice; of others
    the second does not count (KIP-1161).
    """

    name: str
    type: ConfigType
    default: str | None
    check: Check = any_value
    repeats: bool = False

    def parse(self, text: str) -> Any:
        """The value that `text` means. Raises ValueError, in Kafka's words."""
        text = java.trim(text)
        try:
            return self._parse(text)
        except ValueError:
            if self.type is ConfigType.BOOLEAN:
                raise ValueError("Expected value to be either true or false") from None
            raise ValueError(f"Not a number of type {self.type.name}") from None

    def _parse(self, text: str) -> Any:
        match self.type:
            case ConfigType.BOOLEAN:
                return java.boolean(text)
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                return java.integer(text, _LIMITS[self.type.name])
            case ConfigType.DOUBLE:
                return java.double(text)
            case ConfigType.LIST:
                items = java.items(text)
                return items if self.repeats else list(dict.fromkeys(items))
            case _:
                return text

    def fault(self, text: str) -> str:
        """What is wrong with `text`, "" if nothing."""
        try:
            value = self.parse(text)
        except ValueError as error:
            return invalid(self.name, text, str(error))
        return self.check(self.name, value)

    def canonical(self, text: str) -> str:
        """A legal `text` as Kafka prints what it means: "TRUE" is "true", "a, b" is "a,b"."""
        value = self.parse(text)
        match value:
            case bool():
                return str(value).lower()
            case float():
                return java.double_text(value)
            case list():
                return ",".join(value)
            case _:
                return str(value)


def invalid(name: str, value: Any, fault: str) -> str:
    value = java.double_text(value) if isinstance(value, float) else value
    return f"Invalid value {value} for configuration {name}: {fault}"


def between(low: float, high: float | None = None) -> Check:
    def check(name: str, value: Any) -> str:
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid(name, value, f"Value must be no more than {high}")
        return ""

    return check


def one_of(*choices: str) -> Check:
    """Of a list, every item must be one of them."""

    def check(name: str, value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        if isinstance(value, list) and "" in value:
            return f"Configuration '{name}' values must not be empty."
        wrong = next((v for v in values if v not in choices), None)
        return "" if wrong is None else invalid(name, wrong, f"String must be one of: {', '.join(choices)}")

    return check


def gzip_level(name: str, level: Any) -> str:
    if level == -1 or 1 <= level <= 9:
        return ""
    return invalid(name, level, "Value must be between 1 and 9 or equal to -1")


def throttled_replicas(name: str, replicas: Any) -> str:
    """Empty items do not count."""
    if "".join(replicas) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", replica) for replica in replicas):
        return ""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    fault = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return invalid(name, f"[{', '.join(replicas)}]", fault)
