"""The property file; and configs by name, as clients set them at run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from kshim.configs.brokers import DYNAMIC_CONFIGS
from kshim.configs.config import PROPERTIES, Config
from kshim.configs.definition import Definition
from kshim.configs.properties_file import parse_properties
from kshim.configs.reading import ConfigError, new_config
from kshim.configs.topics import TOPIC_CONFIGS
from schemas.primitives import NO_UTF8
from tests.fuzz.target import Target


def _read_file(data: bytes) -> tuple[Mapping[str, str], Config, list[str]]:
    properties = parse_properties(data.decode())
    return properties, *new_config(properties)


def _check_file(data: bytes, found: Any) -> None:
    try:
        properties = parse_properties(data.decode())
    except UnicodeDecodeError:
        return
    for text in (*properties, *properties.values()):
        text.encode()  # it is printed, or names a directory
    assert parse_properties(_file(properties)) == properties
    if found is not None:
        _, config, _ = found
        assert new_config(config.given)[0] == config


def _file(properties: Mapping[str, str]) -> str:
    return "\n".join(f"{_escaped(key)}={_escaped(value)}" for key, value in properties.items())


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x80 and not c.isalnum() else c for c in text)


def _file_seeds(chance: Random) -> Iterable[bytes]:
    yield from (f"{row.name}={row.default}\n".encode() for row in PROPERTIES.values())
    yield b"# a comment\n! another\r\nnum.partitions : 3\rlog.dirs /tmp/\\u00e9\nnode.id=\\\n   7\n\n"
    yield b"listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
    yield b"listeners=IN://[::1]:0\nlistener.security.protocol.map=IN:PLAINTEXT,OUT:SSL\n"
    yield b"broker.id=2\nzookeeper.connect=here\nprocess.roles=broker\nlog.cleaner.min.cleanable.ratio=.25"
    yield b"a\\ key\\:with\\=all=\\t\\n\\r\\f\\\\ \\ud83d\\ude00"


PROPERTY_FILE = Target(
    "property-file",
    _read_file,
    (ConfigError, UnicodeDecodeError),
    _check_file,
    _file_seeds,
    words=(b"=", b":", b"\\", b"\\\n", b"\\u", b"\\ud800", b"\n", b"\r", b",", b"://", b"-1", b"0" * 5000),
)


# ---- configs by name

ROWS: tuple[Definition, ...] = (*TOPIC_CONFIGS.values(), *DYNAMIC_CONFIGS.values())


def _row_and_text(data: bytes) -> tuple[Definition, str]:
    return ROWS[(data[0] if data else 0) % len(ROWS)], data[1:].decode("utf-8", NO_UTF8)


def _read_config(data: bytes) -> tuple[str, str]:
    row, text = _row_and_text(data)
    fault = row.fault(text)
    return fault, row.canonical(text) if not fault else ""


def _check_config(data: bytes, found: tuple[str, str]) -> None:
    row, text = _row_and_text(data)
    fault, canonical = found
    fault.encode()
    if not fault:
        canonical.encode()
        assert row.canonical(canonical) == canonical
        assert row.fault(canonical) == "" or (canonical == "" and "," in text)


def _config_seeds(chance: Random) -> Iterable[bytes]:
    for index, row in enumerate(ROWS):
        yield bytes([index]) + (row.default or "").encode()
    for index, row in enumerate(ROWS):
        if row.type.name == "DOUBLE":
            yield from (bytes([index]) + text for text in (b"0x.8p0", b"NaN", b"1e-5f", b".25"))


CONFIGS = Target(
    "configs",
    _read_config,
    (),
    _check_config,
    _config_seeds,
    words=(b",", b" ", b"+", b"-", b"e", b"0x", b"p", b"NaN", b"1:1", b"*", "٣".encode(), "ſ".encode()),
)
