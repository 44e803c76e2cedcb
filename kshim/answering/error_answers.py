"""Where each API keeps its error, and the answer that carries one to a request that was not performed.

The places are found in the definitions of the messages. Where an API has several, an error stands at the
outermost, as in the answers of Apache Kafka to a request that fails as a whole (`getErrorResponse`), unless
clients look for it further in (`FURTHER_IN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from typing import Any, Final

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.message import definition
from schemas.registry import MESSAGES

Place = tuple[str, ...]
"""The names of fields, from a response inwards; the last one has the error."""

ALL: Final = frozenset(ErrorCode)
FURTHER_IN: Final[Mapping[ApiKey, tuple[Set[Place], Set[ErrorCode]]]] = {
    ApiKey.FETCH: (
        {("responses", "partitions", "error_code")},
        ALL
        - {
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        },
    ),
    ApiKey.METADATA: ({("topics", "error_code")}, ALL - {ErrorCode.REBOOTSTRAP_REQUIRED}),
    ApiKey.OFFSET_FETCH: (
        {("topics", "partitions", "error_code"), ("groups", "topics", "partitions", "error_code")},
        {
            ErrorCode.UNSTABLE_OFFSET_COMMIT,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        },
    ),
    ApiKey.OFFSET_DELETE: (
        {("topics", "partitions", "error_code")},
        {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    ),
    ApiKey.LEAVE_GROUP: (
        {("members", "error_code")},
        {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID},
    ),
}
"""The errors that stand further in, and where."""
UNKNOWN: Final = frozenset(
    ("base_offset", "high_watermark", "committed_offset", "low_watermark", "node_id", "port")
)
"""The numbers that are -1 beside an error."""
_NOT_REPEATED: Final = frozenset(("timestamp", "leader_epoch", "num_partitions", "replication_factor"))
_ERRORS: Final = frozenset(("error_code", "partition_error_code"))
_ASKED: Final[Mapping[ApiKey, Callable[[Any], Iterable[object]]]] = {
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda request: [topic for each in request.dirs for topic in each.topics],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda request: sorted(
        {each.name for each in (*request.deletions, *request.upsertions)}
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda request: ("",),
}
"""What a request asks for, entry by entry, where that is not the first of its arrays."""


@cache
def places(api_key: ApiKey, version: int) -> tuple[Place, ...]:
    """All places of an error in a response, from the outermost to the innermost."""
    return tuple(sorted(_found(MESSAGES[api_key][1], version, ()), key=len))


@cache
def place(api_key: ApiKey, version: int, error: ErrorCode) -> Place:
    """Where an error stands in a response."""
    there = places(api_key, version)
    within, errors = FURTHER_IN.get(api_key, (frozenset(), frozenset()))
    inner = [each for each in there if each in within and error in errors]
    return (inner or there)[0]


def answer(api_key: ApiKey, version: int, request: object, error: ErrorCode) -> Any | None:
    """The response that carries an error; None if there is no place, as the request asks for nothing."""
    where = place(api_key, version, error)
    of_api = _ASKED.get(api_key)
    if len(where) > 1 and of_api is not None:
        return _with_entries(MESSAGES[api_key][1], where, of_api(request), error, version)
    return _with_error(MESSAGES[api_key][1], where, request, error, version)


def entry(api_key: ApiKey, version: int, asked: object, error: ErrorCode) -> object:
    """What a response has for one entry of a request, if the error does not stand at the top."""
    cls, inner = _entry_class(api_key, version, error)
    return _with_error(cls, inner, asked, error, version)


@cache
def _entry_class(api_key: ApiKey, version: int, error: ErrorCode) -> tuple[object, Place]:
    """The class of such an entry, and the place of the error in it."""
    name, *inner = place(api_key, version, error)
    (field,) = (each for each in definition(MESSAGES[api_key][1]).fields if each.name == name)
    return field.type.element, tuple(inner)


def _found(cls: type[object], version: int, above: Place) -> Iterator[Place]:
    for field in definition(cls).fields:
        if not field.exists(version):
            continue
        if field.name in _ERRORS:
            yield (*above, field.name)
        entity = getattr(field.type, "element", None)
        if isinstance(entity, type):
            yield from _found(entity, version, (*above, field.name))


def _with_error(cls: Any, where: Place, asked: object, error: ErrorCode, version: int) -> Any | None:
    """A value of `cls` that answers `asked`, an entity or a name or a number, with an error at `where`."""
    if len(where) > 1:
        return _with_entries(cls, where, _entries(asked, version), error, version, asked)
    return cls(**_repeated(cls, asked, version), **{where[0]: error})


def _with_entries(
    cls: Any, where: Place, asked: Iterable[object], error: ErrorCode, version: int, above: Any = None
) -> object | None:
    """A value of `cls` with an entry for each thing that was asked for; None if that is nothing."""
    name, *inner = where
    (field,) = (each for each in definition(cls).fields if each.name == name)

    def made(each: object) -> object:
        return _with_error(field.type.element, tuple(inner), each, error, version)

    # Made when they are written, as they may be many.
    entries = Mapped(made, tuple(each for each in asked if _names_any(each, len(inner) - 1, version)))
    return cls(**_repeated(cls, above, version), **{name: entries}) if entries else None


def _names_any(asked: object, depth: int, version: int) -> bool:
    """Whether a thing that was asked for names anything so many arrays further in."""
    return not depth or any(_names_any(each, depth - 1, version) for each in _entries(asked, version))


def _entries(asked: Any, version: int) -> Iterable[object]:
    """The first array of an entity of a request."""
    name = _array(asked.__class__, version)
    return () if name is None else getattr(asked, name) or ()


@cache
def _array(cls: type[object], version: int) -> str | None:
    """The name of the first array of an entity."""
    for field in definition(cls).fields:
        if field.exists(version) and hasattr(field.type, "element"):
            return str(field.name)
    return None


def _repeated(cls: type[object], asked: object, version: int) -> dict[str, object]:
    """The numbers that are unknown, and what an answer repeats, so that the client knows again what it has
    asked for: fields of the same name, else the first for the first of its type.
    """
    fields = [each for each in definition(cls).fields if each.exists(version)]
    found: dict[str, object] = {each.name: -1 for each in fields if each.name in UNKNOWN}
    if definition(cls).api_key is not None:
        return found
    keys = [each for each in fields if not each.name.startswith("error") and each.name not in _NOT_REPEATED]
    if isinstance(asked, str | int):
        return found | {keys[0].name: asked}
    given = {each.name: each for each in definition(type(asked)).fields}
    for key in keys:
        same = given.get(key.name)
        if same is not None and getattr(same.type, "element", None) is getattr(key.type, "element", None):
            value = getattr(asked, key.name)
            found |= {} if value is None else {key.name: value}
    first = next(iter(given.values()))
    if keys and keys[0].name not in given and keys[0].type is first.type:
        found[keys[0].name] = getattr(asked, first.name)
    return found
