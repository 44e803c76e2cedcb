"""Makes the values of a program's records, and reads what the program leaves behind: lines on its standard
output, and records of its output topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from string import Template
from typing import Final

NUMBER_HEADER: Final = "kshim-number"
"""The header of each record that is produced for the program: its number."""
INSTANCE_HEADER: Final = "kshim-instance"
"""A header with which a program may say which instance made an output."""
POINTER: Final = "/number"
"""The JSON pointer that leads to the number in the value of each record that is produced."""
VALUE: Final = '{"number": $number, "key": "$key"}'
"""The value of each record that is produced for the program, as a template."""
_NAMES: Final = frozenset(("number", "key"))
_LINE: Final = re.compile(r"processed (\S+) (\d+) (\d+)\s*$")


def reported(line: str) -> tuple[str, int, int] | None:
    """The topic, partition and offset of a line such as "processed orders 3 17"; None for any other line."""
    found = _LINE.match(line)
    return (found[1], int(found[2]), int(found[3])) if found else None


def looks_like_report(line: str) -> bool:
    """True if a line is meant as a report and is none."""
    return line.startswith("processed") and reported(line) is None


def pointed(value: object, pointer: str) -> object:
    """What a JSON pointer (RFC 6901) leads to; None if it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def number_in(
    headers: Iterable[tuple[str, bytes | None]], value: bytes | None, pointer: str = POINTER
) -> int | None:
    """The number of the input that an output belongs to: its header, else its JSON value at the pointer."""
    text = dict(headers).get(NUMBER_HEADER)
    if text is not None and text.decode(errors="replace").isdecimal():
        return int(text)
    try:
        found = pointed(json.loads(value or b""), pointer)
    except ValueError:
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def instance_in(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """The instance that made an output; "" if it does not say so."""
    return (dict(headers).get(INSTANCE_HEADER) or b"").decode(errors="replace")


def input_value(template: str, number: int, key: str) -> str:
    """The value of a record that is produced for the program."""
    return Template(template).substitute(number=number, key=key)


def cannot_fill(template: str) -> str | None:
    """Why no values can be made of a template, and what to write; None if they can."""
    made = Template(template)
    if not made.is_valid():
        return f"the value {template!r} has a $ without a name: write $number, $key, or $$ for a $"
    if unknown := sorted(set(made.get_identifiers()) - _NAMES):
        return f"the value has ${unknown[0]}: only $number and $key are known"
    return None
