"""Message classes: immutable values with defaults, and a struct for each of their versions."""

import dataclasses
from typing import Any
from uuid import UUID

import pytest

from schemas.message import definition, entity, field, message
from schemas.primitives import (
    ConstructError,
    array,
    boolean,
    bytes_,
    float64,
    int16,
    int32,
    nullable,
    nullable_array,
    nullable_string,
    records,
    string,
    uuid,
)


@entity
class Part:
    """A part."""

    name: str = field(string)
    size: int = field(int32, since=2, default=-1)


@message(versions=range(0, 5), flexible=3)
class Whole:
    """A whole."""

    title: str = field(string, nullable_since=2)
    old: int = field(int16, until=1)
    parts: tuple[Part, ...] = field(array(Part))
    part: Part = field(Part, since=1)
    other: Part | None = field(Part, since=1, nullable_since=4, default=None)
    note: str | None = field(nullable_string, since=3, tag=1, default=None)
    best: Part = field(Part, since=3, tag=0)


@message(versions=range(0, 1), flexible=None)
class Defaults:
    boolean: bool = field(boolean)
    number: int = field(int32)
    real: float = field(float64)
    string: str = field(string)
    nullable_string: str | None = field(nullable_string)
    data: bytes = field(bytes_)
    records: bytes | memoryview | None = field(records)
    uuid: UUID = field(uuid)
    items: tuple[int, ...] = field(array(int32))
    nullable_items: tuple[int, ...] | None = field(nullable_array(int32))
    part: Part = field(Part)
    perhaps: Part | None = field(nullable(Part), default=None)
    given: int = field(int32, default=60000)


def test_every_field_has_a_default() -> None:
    made = Defaults()
    assert [getattr(made, it.name) for it in dataclasses.fields(made)] == [
        *(False, 0, 0.0, "", "", b"", None, UUID(int=0), (), (), Part(), None, 60000),
        (),
    ]


def test_equality_and_hash_are_of_all_fields() -> None:
    assert Part(name="a", size=1) == Part(size=1, name="a")
    assert hash(Part(name="a")) == hash(Part(name="a"))
    assert Part(name="a") != Part(name="b")
    assert Part() != Part(unknown_tags=((1, b""),))
    assert Part() != Whole()
    assert {Part(): 1}[Part()] == 1


def test_repr_shows_what_is_not_default() -> None:
    assert repr(Whole(title="t", parts=(Part(name="a", size=3), Part()))) == (
        "Whole(title='t', parts=(Part(name='a', size=3), Part()))"
    )


def test_values_cannot_change() -> None:
    part = Part(name="a")
    with pytest.raises(AttributeError, match="Part is frozen: name cannot change"):
        part.name = "b"
    with pytest.raises(AttributeError, match="frozen"):
        del part.name
    with pytest.raises(AttributeError):
        part.other = 1
    assert not hasattr(part, "__dict__")
    assert part == Part(name="a")


def test_only_known_fields_by_name() -> None:
    with pytest.raises(TypeError):
        Part(nome="a")
    with pytest.raises(TypeError):
        Part("a")


def test_dataclasses_functions_work() -> None:
    whole = Whole(title="t")
    assert dataclasses.replace(whole, old=3) == Whole(title="t", old=3)
    assert dataclasses.replace(whole) == whole
    assert whole == Whole(title="t")
    assert dataclasses.is_dataclass(Whole)
    assert dataclasses.asdict(Part(name="a")) == {"name": "a", "size": -1, "unknown_tags": ()}


def test_class_keeps_its_name_and_docstring() -> None:
    assert (Whole.__name__, Whole.__doc__, Whole.__module__) == ("Whole", "A whole.", __name__)
    assert isinstance(Whole(), Whole)
    assert type(Whole()) is Whole


@pytest.mark.parametrize(
    ("version", "names"),
    [
        (0, ["title", "old", "parts"]),
        (1, ["title", "old", "parts", "part", "other"]),
        (2, ["title", "parts", "part", "other"]),
        (3, ["title", "parts", "part", "other", "tagged"]),
    ],
)
def test_struct_has_the_fields_of_the_version(version: int, names: list[str]) -> None:
    assert [each.name for each in struct_of(Whole, version).subcons] == names


def struct_of(cls: Any, version: int) -> Any:
    return cls.struct(version)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "000161 0005 00000001 000162"),
        (1, "000161 0005 00000001 000162 000163 000164"),
        (2, "000161 00000001 000162 00000007 000163 ffffffff 000164 ffffffff"),
        (3, "0261 02 0262 00000007 00 0263 ffffffff 00 0264 ffffffff 00 00"),
        (4, "0261 02 0262 00000007 00 0263 ffffffff 00 01 0264 ffffffff 00 00"),
    ],
)
def test_bytes_of_each_version(version: int, data: str) -> None:
    parts = (Part(name="b", size=7),)
    whole = Whole(title="a", old=5, parts=parts, part=Part(name="c"), other=Part(name="d"))
    frame = bytes.fromhex(data)
    assert struct_of(Whole, version).build(whole) == frame
    read = struct_of(Whole, version).parse(frame)
    assert (read.title, read.old) == ("a", 5 if version < 2 else 0)
    assert read.parts == (Part(name="b", size=7 if version > 1 else -1),)
    assert read.other == (Part(name="d") if version > 0 else None)


def test_null_only_since_a_version() -> None:
    whole = Whole(title=None, other=Part())
    assert struct_of(Whole, 2).build(whole)[:2] == b"\xff\xff"
    with pytest.raises(ConstructError, match="null is not allowed"):
        struct_of(Whole, 1).build(whole)
    nothing = struct_of(Whole, 4).build(Whole())
    assert nothing == bytes.fromhex("01 01 01 ffffffff 00 ff 00")
    assert struct_of(Whole, 4).parse(nothing) == Whole()


def test_tagged_fields_ascend_and_are_left_out_when_default() -> None:
    frame = bytes.fromhex("01 01 01 ffffffff 00 ff 03 00 07 0262 ffffffff 00 01 02 0261 05 01 7a")
    whole = Whole(note="a", best=Part(name="b"), unknown_tags=((5, b"z"),))
    assert struct_of(Whole, 4).build(whole) == frame
    assert struct_of(Whole, 4).parse(frame) == whole


def test_unknown_version() -> None:
    with pytest.raises(ValueError, match="Whole has no version 5"):
        struct_of(Whole, 5)
    with pytest.raises(ValueError, match="Part has no version 0"):
        struct_of(Part, 0)


def test_definition_says_what_the_author_wrote() -> None:
    defined = definition(Whole)
    assert (defined.name, defined.versions, defined.flexible, defined.api_key) == ("Whole", range(5), 3, None)
    assert [it.name for it in defined.fields if it.tag is not None] == ["note", "best"]
    assert [version for version in range(5) if defined.is_flexible(version)] == [3, 4]
