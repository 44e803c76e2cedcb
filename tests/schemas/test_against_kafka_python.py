"""Every version of every message, compared with kafka-python's codec for the same definitions.

Only kafka-python's structures are used, not its message classes, which rename some fields and turn bit fields
into sets. So its values are dictionaries here, of the fields that a version has.
"""

import io
import warnings
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.compiled import decode, encode
from schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from schemas.message import definition
from schemas.registry import MESSAGES
from tests.schemas.definitions import is_carried
from tests.schemas.strategies import messages, version_name

pytestmark = pytest.mark.thorough

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # from how kafka-python reads definitions
    from kafka.protocol.schemas import StructField, load_json

CLASSES = [
    *(cls for pair in MESSAGES.values() for cls in pair if is_carried(cls.__name__)),
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
]
VERSIONS = [(cls, version) for cls in CLASSES for version in definition(cls).versions or ()]


@cache
def kafka_python(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return StructField(load_json(name))


def form(cls: Any, version: int) -> dict[str, Any]:
    """kafka-python's arguments for the version to read or write, and whether it is flexible."""
    flexible = definition(cls).is_flexible(version)
    return {"version": version, "compact": flexible, "tagged": flexible}


def known(value: Any) -> Any:
    """A value without unknown tagged fields, which kafka-python reads but does not write."""
    if hasattr(value, "__definition__"):
        fields = definition(type(value)).fields
        return type(value)(**{it.name: known(getattr(value, it.name)) for it in fields})
    return tuple(map(known, value)) if isinstance(value, tuple) else value


def plain(value: Any, version: int) -> Any:
    """A value in kafka-python's form: a dictionary, without tagged fields that have their default."""
    if hasattr(value, "__definition__"):
        fields = [it for it in definition(type(value)).fields if it.exists(version)]
        pairs = [(it, getattr(value, it.name)) for it in fields]
        return {it.name: plain(each, version) for it, each in pairs if it.tag is None or each != it.default}
    if isinstance(value, tuple):
        return [plain(each, version) for each in value]
    if isinstance(value, memoryview):
        return bytes(value)
    return None if value == UUID(int=0) else value


@pytest.mark.parametrize("pair", VERSIONS, ids=version_name)
@settings(max_examples=12, deadline=None, database=None)
@given(data=st.data())
def test_both_write_the_same_and_read_each_other(pair: tuple[Any, int], data: st.DataObject) -> None:
    cls, version = pair
    message = known(data.draw(messages(cls, version)))
    theirs, values = kafka_python(cls.__name__), plain(message, version)

    written = encode(message, version)
    assert written == theirs.encode(values, **form(cls, version))

    assert decode(cls, version, written) == message
    assert theirs.decode(io.BytesIO(written), **form(cls, version)) == values
