"""Checks what a test passes to the kit, before anything is sent.

A wrong argument raises TypeError or ValueError, whose text says what to write in its place. Arguments are
checked by their names, so a name means the same in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Final, ParamSpec, TypeVar, cast, get_args

from kshim.testing.loops import refuse_to_block
from kshim.testing.new_records import Codec

__all__ = ["checked", "refuse_configs", "waiting"]

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[str, object], None]

CODECS: Final = get_args(Codec)


def checked(call: Callable[P, R]) -> Callable[P, R]:
    """Make a call check its arguments."""
    expected = signature(call)
    checks = {
        name: (check, "None" in str(parameter.annotation))
        for name, parameter in expected.parameters.items()
        if (check := _check_of(parameter))
    }

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = expected.bind(*args, **kwargs).arguments
        except TypeError:
            return call(*args, **kwargs)  # Python's own words for a missing or unknown argument
        for name in checks.keys() & given.keys():
            check, is_optional = checks[name]
            if given[name] is not None or not is_optional:
                check(name, given[name])
        return call(*args, **kwargs)

    return checking


def waiting(call: Callable[P, R]) -> Callable[P, R]:
    """Make a call that waits for a server check its arguments, and refuse to block the event loop of its
    thread.
    """
    with_checks = checked(call)

    @wraps(call)
    def waits(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_to_block(call.__name__)
        return with_checks(*args, **kwargs)

    return waits


def _check_of(parameter: Parameter) -> Check | None:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return _names
    return None if parameter.kind is Parameter.VAR_KEYWORD else CHECKS.get(parameter.name)


# ---- kinds of arguments


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} has to be a str, not {_a(value)}: {value!r}")


def _count(low: int) -> Check:
    def check(name: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} has to be an int, not {_a(value)}: {value!r}")
        if value < low:
            raise ValueError(f"{name} has to be {low} or more, not {value}")

    return check


def _seconds(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is a number of seconds, not {_a(value)}: {value!r}")
    if value < 0:
        raise ValueError(f"{name} has to be 0 or more, not {value}")


def _number(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} has to be a number, not {_a(value)}: {value!r}")


def _names(name: str, value: object) -> None:
    """Names that are given one by one: `delete_topics("a", "b")`."""
    for each in cast("tuple[object, ...]", value):
        if isinstance(each, list | tuple | set | frozenset):
            raise TypeError(f"{name} are given one by one: write *{each!r}, with a star")
        _text(f"each of {name}", each)


def _texts_by_name(name: str, value: object) -> None:
    """Kafka's own form of settings: text by name, as in {"num.partitions": "3"}."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} has to be a dict, not {_a(value)}: {value!r}")
    for key, each in value.items():
        _text(f"a key of {name}", key)
        if not isinstance(each, str):
            text = str(each).lower() if isinstance(each, bool) else str(each)
            raise TypeError(
                f"{name}[{key!r}] has to be a str, not {_a(each)}: write {{{key!r}: {text!r}}}, with quotes"
            )


def _clients(name: str, value: object) -> None:
    if isinstance(value, str):
        raise TypeError(f"{name} has to be True or a list of names: write {name}=[{value!r}]")
    if not isinstance(value, bool):
        for each in _iterated(name, value):
            _text(f"each of {name}", each)


def _records(name: str, value: object) -> None:
    if isinstance(value, str | bytes | bytearray | memoryview):
        raise TypeError(f"{name} has to be a list of records, not one {_kind(value)}: write [{value!r}]")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        raise TypeError(f"{name} has to be a list of records, not one record: write [{value!r}]")
    if isinstance(value, Mapping):
        raise TypeError(
            f"{name} has to be a list of records, not {_a(value)}: for its pairs of key and value write "
            "list(….items()), for one record of JSON [json.dumps(…)]"
        )
    _iterated(name, value)


def _partitions_by_topic(name: str, value: object) -> None:
    if isinstance(value, str):
        raise TypeError(f"{name} has to be a dict or a list of topics: write {name}=[{value!r}]")
    for topic in _iterated(name, value):
        _text(f"a topic in {name}", topic)
        if isinstance(value, Mapping) and value[topic] is not None:
            _count(1)(f"{name}[{topic!r}]", value[topic])


def _records_by_topic(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(
            f'{name} has to be a dict such as {{"orders": ["first"]}}, not {_a(value)}: {value!r}'
        )
    for topic, values in value.items():
        _text(f"a topic in {name}", topic)
        _records(f"{name}[{topic!r}]", values)


def _codec(name: str, value: object) -> None:
    if value not in CODECS:
        raise ValueError(f"{name} has to be one of {', '.join(CODECS)}, not {value!r}")


def _offsets(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f'{name} has to be a dict such as {{("orders", 0): 5}}, not {_a(value)}: {value!r}')
    for key, offset in value.items():
        match key:
            case (str(), int()):
                _count(0)(f"{name}[{key!r}]", offset)
            case str():
                raise TypeError(
                    f"a key of {name} has to be a topic and a partition, not {key!r}: "
                    f"write {{({key!r}, 0): {offset!r}}}"
                )
            case _:
                raise TypeError(f"a key of {name} has to be a topic and a partition, not {key!r}")


CHECKS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(
        ("bootstrap", "topic", "name", "prefix", "group", "group_id", "group_instance_id"), _text
    ),
    **dict.fromkeys(("member", "member_id", "password", "user", "client_id", "ip", "api", "cause"), _text),
    "topics": _partitions_by_topic,
    "records": _records_by_topic,
    **dict.fromkeys(("n", "partition", "offset", "members", "node_id", "after"), _count(0)),
    **dict.fromkeys(("partitions", "replicas", "brokers"), _count(1)),
    **dict.fromkeys(("days", "hours", "minutes", "seconds"), _number),
    **dict.fromkeys(("properties", "configs", "users"), _texts_by_name),
    "timeout_s": _seconds,
    "values": _records,
    "compression": _codec,
    "offsets": _offsets,
    "tls": _clients,
}
"""The check of each argument, by the argument's name."""

MEANT: Final = {
    "replication_factor": "replicas",
    "replication": "replicas",
    "num_partitions": "partitions",
}


def refuse_configs(configs: Iterable[str]) -> None:
    """Refuse what is no config of a topic, though other clients have an argument of that name."""
    for name in configs:
        if meant := MEANT.get(name):
            raise TypeError(f"{name} is no config of a topic: write {meant}=…")


def _iterated(name: str, value: object) -> Iterable[object]:
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} has to be a list, not {_a(value)}: write [{value!r}]")
    return value


def _kind(value: object) -> str:
    return type(value).__name__


def _a(value: object) -> str:
    kind = _kind(value)
    if value is None:
        return "None"
    return f"an {kind}" if kind[0] in "aeiouAEIOU" else f"a {kind}"
