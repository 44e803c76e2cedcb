"""One class for all versions of a message.

    @message(api_key=ApiKey.HEARTBEAT, versions=range(0, 5), flexible=4)
    class HeartbeatRequest:
        group_id: str = field(string)
        group_instance_id: str | None = field(nullable_string, since=3, default=None)

`@message` and `@entity` (a structure inside messages) turn such a class into a frozen, slotted class whose
values are made with keyword arguments. Every field has a default, so callers pass only the fields that
matter. A field states its versions once. `Class.struct(version)` describes the bytes of one version;
`schemas.compiled` turns that into fast code.

A field that does not exist in the written version is left out, whatever its value. Kafka's classes refuse to
write such a field unless it is marked ignorable. But a server answers requests of every version from one
state, and would have to clear those fields each time.

`dataclasses.replace` and `fields` work on these classes, but `@dataclass` does not make them: a hundred
dataclasses take 60 ms at every start, and a frozen value with seven fields takes 0.9 us to make. It is
several times faster to fill a mutable twin of the class, and then set its `__class__` to the frozen class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar, dataclass_transform

from schemas import primitives
from schemas.api_key import ApiKey

T = TypeVar("T")
Type = primitives.WireType | type
_MISSING: Final = object()


class Structure(Protocol):
    """A message or an entity: `dataclasses.replace` takes it."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]


S = TypeVar("S", bound=Structure)


class MalformedMessage(Exception):
    """The bytes are not a message."""

    def __init__(self, reason: str, *, api: str, version: int, field: str = "", offset: int = 0) -> None:
        at = f".{field}" if field else ""
        super().__init__(f"{api} v{version}{at} at byte {offset}: {reason}")
        self.reason = reason
        self.api = api  # class name of the message
        self.version = version
        self.field = field  # path of the field, such as "topics.name"
        self.offset = offset  # in the frame; of the field, or of the part of it that cannot be read


class TooLarge(Exception):
    """A message that is larger than the caller allows."""


class TooManyElements(TooLarge):
    """A message whose arrays and unknown tagged fields together have more elements than the caller allows."""


class TooManyBytes(TooLarge):
    """A message with more bytes than the caller allows."""


class Field:
    """One field as its class declares it: its type, and the versions in which it exists."""

    __slots__ = (
        "_default",
        "is_plain",
        "is_secret",
        "name",
        "nullable_since",
        "since",
        "tag",
        "type",
        "until",
    )

    def __init__(
        self,
        type: Type,
        since: int,
        until: int,
        default: object,
        tag: int | None,
        nullable_since: int | None,
        is_plain: bool,
        is_secret: bool,
    ) -> None:
        self.name = ""
        self.type: Any = type
        self.since = since
        self.until = until
        self.tag = tag
        self.nullable_since = nullable_since
        self.is_plain = is_plain
        self.is_secret = is_secret
        self._default = default

    def exists(self, version: int) -> bool:
        """True if the field is part of that version."""
        return self.since <= version <= self.until

    @property
    def default(self) -> object:
        """The value of the field if the caller passes none, or if the version does not have the field."""
        if self._default is _MISSING:
            self._default = self.type() if isinstance(self.type, type) else self.type.implicit
        return self._default

    def wire(self, version: int, flexible: bool) -> primitives.WireType:
        """The wire type of this field in one version."""
        wire = self.type
        if self.nullable_since is not None and version >= self.nullable_since:
            wire = primitives.nullable(wire) if isinstance(wire, type) else wire.nullable
        return _wire(wire, version, flexible and not self.is_plain)


def field(
    type: Type,
    *,
    since: int = 0,
    until: int = 0x7FFF,
    default: object = _MISSING,
    tag: int | None = None,
    nullable_since: int | None = None,
    plain: bool = False,
    secret: bool = False,
) -> Any:
    """A field of a message or entity.

    type: a wire type of `schemas.primitives`, or an entity class. since, until: first and last version that
    has the field. default: if missing, the type's default (0, "", (), b"", False, the nil UUID; None for
    records). tag: the number of a tagged field. nullable_since: first version in which it may be None, if it
    may not in every version; otherwise use a nullable type. plain: never in compact form. secret: repr() of
    the message hides its value.
    """
    return Field(type, since, until, default, tag, nullable_since, plain, secret)


class Definition:
    """The name, fields and versions of a message or entity class."""

    __slots__ = ("api_key", "entity", "fields", "flexible", "name", "twin", "versions")
    entity: type[object]

    def __init__(
        self,
        name: str,
        twin: type[object],
        fields: tuple[Field, ...],
        versions: range | None,
        flexible: int | None,
        api_key: ApiKey | None,
    ) -> None:
        self.name = name
        self.twin = twin
        self.fields = fields
        self.versions = versions
        self.flexible = flexible
        self.api_key = api_key

    def is_flexible(self, version: int) -> bool:
        """True if that version has compact types and tagged fields (KIP-482)."""
        return self.flexible is not None and version >= self.flexible


class _DataclassFields:
    """`__dataclass_fields__`, which the functions of `dataclasses` need. It is made at its first use."""

    def __get__(self, value: object, owner: type[Value]) -> dict[str, dataclasses.Field[object]]:
        named = [
            (name, object, dataclasses.field(default=it)) for name, it in _defaults(owner.__definition__)
        ]
        made = dataclasses.make_dataclass(owner.__name__, named, kw_only=True)
        found = {each.name: each for each in dataclasses.fields(made)}
        type.__setattr__(owner, "__dataclass_fields__", found)
        return found


def _defaults(definition: Definition) -> list[tuple[str, object]]:
    return [*((each.name, each.default) for each in definition.fields), ("unknown_tags", ())]


class Value:
    """The base of all messages and entities."""

    __slots__ = ()
    __definition__: Definition
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]
    """Made at its first use by a `_DataclassFields`."""
    _values: Callable[[object], tuple[object, ...]]

    def __new__(cls, **values: object) -> Self:
        """Make the constructor of the class at its first use: a process never uses most classes."""
        type.__setattr__(cls, "__new__", staticmethod(_new_constructor(cls.__definition__)))
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return self is other or self._values(self) == self._values(other)

    def __hash__(self) -> int:
        return hash(self._values(self))

    def __repr__(self) -> str:
        """Show the fields that differ from their default; a secret one is shown as "…"."""
        pairs = zip(_defaults(self.__definition__), self._values(self), strict=True)
        secret = {each.name for each in self.__definition__.fields if each.is_secret}
        given = (
            f"{name}={'…' if name in secret else repr(value)}"
            for (name, default), value in pairs
            if value != default
        )
        return f"{type(self).__name__}({', '.join(given)})"

    @classmethod
    def struct(cls, version: int) -> primitives.Entity:
        """The construct.Struct of one version of the message."""
        return struct(cls, version)


type.__setattr__(Value, "__dataclass_fields__", _DataclassFields())


def _refuse_change(self: object, name: str, value: object = None) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot change")


def _new_constructor(definition: Definition) -> Callable[..., object]:
    """A function that fills a mutable twin, and then sets its class to the frozen class."""
    defaults = _defaults(definition)
    env: dict[str, object] = {"_twin": definition.twin} | {
        f"_default_{name}": default for name, default in defaults
    }
    arguments = ", ".join(f"{name}=_default_{name}" for name, _ in defaults)
    fill = "".join(f" self.{name} = {name}\n" for name, _ in defaults)
    source = f"def __new__(cls, *, {arguments}):\n self = _twin()\n{fill} self.__class__ = cls\n return self"
    exec(source, env)
    new = env["__new__"]
    assert callable(new)
    return new


def _build(cls: type[T], versions: range | None, flexible: int | None, api_key: ApiKey | None) -> type[T]:
    fields = tuple(vars(cls)[name] for name in cls.__annotations__)
    for name, each in zip(cls.__annotations__, fields, strict=True):
        each.name = name
    names = (*cls.__annotations__, "unknown_tags")
    about = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    twin = type(cls.__name__, (), about | {"__slots__": names})
    definition = Definition(cls.__name__, twin, fields, versions, flexible, api_key)
    frozen = {
        "__slots__": (),
        "__annotations__": cls.__annotations__,
        "__definition__": definition,
        "__setattr__": _refuse_change,
        "__delattr__": _refuse_change,
        "_values": attrgetter(*names),
    }
    built: type[T] = type(cls.__name__, (Value, twin), about | frozen)
    definition.entity = built
    return built


@dataclass_transform(kw_only_default=True, frozen_default=True)
def entity(cls: type[T]) -> type[T]:
    """Make the class of a structure inside messages. The versions of its fields are those of the message."""
    return _build(cls, None, None, None)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def entity_named(name: str) -> Callable[[type[T]], type[T]]:
    """Like `entity`, for a structure whose name in Kafka's definition another class of the module has."""

    def decorate(cls: type[T]) -> type[T]:
        made = entity(cls)
        definition(made).name = name
        return made

    return decorate


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(
    *, versions: range, flexible: int | None, api_key: ApiKey | None = None
) -> Callable[[type[T]], type[T]]:
    """Make the class of a message.

    versions: all versions. flexible: the first flexible version; None if there is none. api_key: None if it
    is not a request.
    """

    def decorate(cls: type[T]) -> type[T]:
        return _build(cls, versions, flexible, api_key)

    return decorate


def definition(cls: type[object]) -> Definition:
    """The definition of a message or entity class."""
    found: Definition = vars(cls)["__definition__"]
    return found


_unknown_tags = attrgetter("unknown_tags")


def without_unknown_tags(value: S) -> S:
    """An entity without its unknown tagged fields, which may be of any size."""
    return dataclasses.replace(value, unknown_tags=()) if _unknown_tags(value) else value


_structs: dict[tuple[object, int, bool], primitives.Entity] = {}


def struct(cls: type[object], version: int) -> primitives.Entity:
    """The construct.Struct that parses and builds one version of a message.

    Raises ValueError for a version that the message does not have.
    """
    defined = definition(cls)
    if defined.versions is None or version not in defined.versions:
        raise ValueError(f"{defined.name} has no version {version}")
    return _struct(cls, version, defined.is_flexible(version))


def _struct(cls: type[object], version: int, flexible: bool) -> primitives.Entity:
    found = _structs.get((cls, version, flexible))
    if found is None:
        found = _structs[cls, version, flexible] = _new_struct(cls, version, flexible)
    return found


def _new_struct(cls: type[object], version: int, flexible: bool) -> primitives.Entity:
    existing = [each for each in definition(cls).fields if each.exists(version)]
    fields = [(each.name, each.wire(version, flexible)) for each in existing if each.tag is None]
    known = {
        each.tag: (each.name, each.wire(version, flexible), each.default)
        for each in existing
        if each.tag is not None
    }
    of_others = {each.tag for each in definition(cls).fields if each.tag is not None} - known.keys()
    tagged = primitives.TaggedFields(known, frozenset(of_others)) if flexible else None
    return primitives.Entity(cls, fields, tagged)


def _wire(wire: Type, version: int, flexible: bool) -> primitives.WireType:
    if isinstance(wire, type):
        return _struct(wire, version, flexible)
    if isinstance(wire, primitives.Nullable):
        return primitives.Nullable(_wire(wire.element, version, flexible))
    if isinstance(wire, primitives.Array):
        wire = primitives.Array(_wire(wire.element, version, flexible), is_nullable=wire.is_nullable)
    return wire.compact if flexible else wire
