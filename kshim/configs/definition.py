"""One config: its type, its default and its legal values, with faults in Kafka's words.

A config is stored and sent as text. `parse` returns the value of a text, and `canonical` returns Kafka's
spelling of that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from kshim.configs import java
from kshim.configs.java import INT_MAX, LONG_MAX, SHORT_MAX

_LIMITS = {"SHORT": SHORT_MAX, "INT": INT_MAX, "LONG": LONG_MAX}

Value = bool | int | float | str | list[str]
"""The parsed value of a config, by its type."""
Check = Callable[[str, object], str]
"""Takes the name of a config and a parsed value; returns what is wrong with the value, "" if nothing."""


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


def any_value(name: str, value: object) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One config: its name, type, default and check."""

    name: str
    type: ConfigType
    default: str | None
    """None if Kafka's default is null."""
    check: Check = any_value
    repeats: bool = False
    """True if its list may have an item twice. In other lists only the first one stays (KIP-1161)."""

    def parse(self, text: str) -> Value:
        """The value that `text` means. Raises ValueError, in Kafka's words."""
        text = java.trim(text)
        try:
            return self._parse(text)
        except ValueError:
            if self.type is ConfigType.BOOLEAN:
                raise ValueError("Expected value to be either true or false") from None
            raise ValueError(f"Not a number of type {self.type.name}") from None

    def _parse(self, text: str) -> Value:
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
        """The fault in `text`; "" if there is none."""
        try:
            value = self.parse(text)
        except ValueError as error:
            return invalid(self.name, text, str(error))
        return self.check(self.name, value)

    def canonical(self, text: str) -> str:
        """A legal `text` in Kafka's spelling: "TRUE" becomes "true", "a, b" becomes "a,b"."""
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


def invalid(name: str, value: object, fault: str) -> str:
    value = java.double_text(value) if isinstance(value, float) else value
    return f"Invalid value {value} for configuration {name}: {fault}"


def between(low: float, high: float | None = None) -> Check:
    def check(name: str, value: object) -> str:
        assert isinstance(value, int | float)
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid(name, value, f"Value must be no more than {high}")
        return ""

    return check


def no_empty_item(name: str, value: object) -> str:
    is_faulty = isinstance(value, list) and "" in value
    return f"Configuration '{name}' values must not be empty." if is_faulty else ""


def one_of(*choices: str) -> Check:
    """A check that the value, or every item of a list, is one of `choices`."""

    def check(name: str, value: object) -> str:
        values = value if isinstance(value, list) else [value]
        wrong = next((v for v in values if v not in choices), None)
        if wrong == "" and isinstance(value, list):
            return no_empty_item(name, value)
        return "" if wrong is None else invalid(name, wrong, f"String must be one of: {', '.join(choices)}")

    return check


def gzip_level(name: str, level: object) -> str:
    assert isinstance(level, int)
    if level == -1 or 1 <= level <= 9:
        return ""
    return invalid(name, level, "Value must be between 1 and 9 or equal to -1")


def throttled_replicas(name: str, replicas: object) -> str:
    """Check that each item is PARTITION:BROKER, or that the text is "*". Empty items do not count."""
    assert isinstance(replicas, list)
    if "".join(replicas) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", replica) for replica in replicas):
        return ""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    fault = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
    return invalid(name, f"[{', '.join(replicas)}]", fault)
