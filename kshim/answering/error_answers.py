"""Makes the answers that carry an error to requests that are not performed, by the table of refusals.

Entries may be tens of thousands, so each is made only when it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.message import Field, Value, definition
from schemas.refusals import ITSELF, REFUSALS, TOP, Each, Refusal
from schemas.registry import MESSAGES


def refusal(api_key: ApiKey, version: int, error: ErrorCode) -> Refusal:
    """Return where the error stands in a response."""
    places = REFUSALS.get(api_key, (TOP,))
    return next(each for each in places if error in each.errors and _exists(api_key, version, each))


def is_at_top(api_key: ApiKey, version: int, error: ErrorCode) -> bool:
    """True if the error stands once in a response, and not in the entries of an array."""
    return not refusal(api_key, version, error).arrays


def has_place(api_key: ApiKey, version: int, request: object, error: ErrorCode) -> bool:
    """True if the answer has a place for the error; it has none if the request asks for nothing."""
    return _part(api_key, version, error).names_any(request)


def answer(
    api_key: ApiKey, version: int, request: object, error: ErrorCode, message: str | None = ""
) -> Value:
    """Return the response that carries an error.

    message: of the error, for responses that have a field for one. If it is empty, the field keeps its
    default; None writes null.
    """
    return _part(api_key, version, error).answer(error, message, request)


def entries(
    api_key: ApiKey, version: int, asked: Sequence[object], error: ErrorCode, message: str | None = ""
) -> tuple[str, Sequence[Value]]:
    """Return entries of a response that carry an error, and the name of their array.

    asked: what they answer, such as entries of the request's array.
    """
    inner = _part(api_key, version, error).inner
    assert inner is not None, "the error stands in entries"
    return inner.array, Mapped(partial(inner.answer, error, message), asked)


class _Part:
    """Makes a response, or the entries of one of its arrays."""

    def __init__(self, cls: type[Value], each: Each, inner: tuple[Each, ...], error_field: str) -> None:
        self.array = each.array
        self._paths = [path.split(".") for path in each.asked.split()]
        self._cls = cls
        self._repeated = each.repeated.items()
        self._unknown = dict.fromkeys(each.unknown, -1)
        self._error_field = error_field
        self._has_message = "error_message" in _fields(cls)
        self.inner: _Part | None = None
        if inner:
            self.inner = _Part(_fields(cls)[inner[0].array].type.element, inner[0], inner[1:], error_field)

    def answer(self, error: ErrorCode, message: str | None, asked: object) -> Value:
        """Return the value that answers `asked`, an entity or a name or a number, with an error."""
        values: dict[str, object] = dict(self._unknown)
        for name, other in self._repeated:
            value = asked if other == ITSELF else getattr(asked, other)
            if value is not None:
                values[name] = value
        inner = self.inner
        if inner is not None:
            named = tuple(each for each in inner.asked(asked) if inner.names_any(each))
            values[inner.array] = Mapped(partial(inner.answer, error, message), named)
        else:
            values[self._error_field] = error
            if self._has_message and message != "":
                values["error_message"] = message
        return self._cls(**values)

    def asked(self, asked: object) -> Iterable[object]:
        """Return what a request, or one thing that it asks for, asks for in this array."""
        if not self._paths:
            return ("",)
        if len(self._paths) == 1:
            return _found(asked, self._paths[0])
        names = {str(each) for path in self._paths for each in _found(asked, path)}
        return sorted(names)

    def names_any(self, asked: object) -> bool:
        """True if what was asked for names anything that the innermost array has an entry for."""
        inner = self.inner
        return inner is None or any(inner.names_any(each) for each in inner.asked(asked))


@cache
def _part(api_key: ApiKey, version: int, error: ErrorCode) -> _Part:
    arrays, _, unknown, error_field = refusal(api_key, version, error)
    return _Part(MESSAGES[api_key][1], Each("", "", {}, unknown), arrays, error_field)


def _exists(api_key: ApiKey, version: int, place: Refusal) -> bool:
    """True if the version has the fields on the way to the error and the request's field that they answer."""
    request = MESSAGES[api_key][0]
    cls: type = MESSAGES[api_key][1]
    for path in place.arrays[0].asked.split() if place.arrays else ():
        if not _fields(request)[path.split(".")[0]].exists(version):
            return False
    for name in place.place:
        field = _fields(cls)[name]
        if not field.exists(version):
            return False
        cls = getattr(field.type, "element", object)
    return True


def _found(asked: object, path: Sequence[str]) -> Iterable[object]:
    """Return the things at a path; the last field of the path may be an array, too."""
    name, *rest = path
    found = getattr(asked, name)
    if rest:
        return [thing for each in found or () for thing in _found(each, rest)]
    return (found,) if isinstance(found, str) else found or ()


def _fields(cls: type) -> dict[str, Field]:
    return {each.name: each for each in definition(cls).fields}
