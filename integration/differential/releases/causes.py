"""Differences between the answers of two releases, gathered by what differs.

A cause is an API, the path of a field without its indexes, and both values. Differences in configs that
DescribeConfigs has shown are left out, so that they hide no others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from integration.differential.playing.compare import Difference, in_part, without_configs
from integration.differential.playing.player import Transcript
from integration.differential.playing.run import Rule
from integration.differential.words.history import Ask, Step

MOMENT = re.compile(r"-?\b[0-9]{13,}\b")
"""Milliseconds since 1970, and sums with them, in a text."""
SHOWN = 240
"""Longer values are cut."""


class Found(NamedTuple):
    """A request that both releases answered, and both answers."""

    name: str
    """The name of the request."""
    version: int
    old: Any
    new: Any

    @classmethod
    def of(cls, difference: Difference) -> Found:
        step = difference.step
        name = step.api_key.name if isinstance(step, Ask) else type(step).__name__
        return cls(name, difference.version, difference.apache_kafka, difference.kshim)


@dataclass
class Cause:
    """What differs in some histories."""

    text: str
    first_in: list[str] = field(default_factory=list)
    """The histories that differ in nothing before it."""
    later_in: list[str] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        examples = ", ".join([*self.first_in, *self.later_in][:3])
        versions = ", ".join(map(str, sorted(self.versions)))
        return f"{len(self.first_in)} + {len(self.later_in)} histories ({examples}), v{versions}: {self.text}"


def causes(found: Iterable[tuple[str, Sequence[Found]]]) -> list[Cause]:
    """The causes of all differences, those first that come first in most histories."""
    gathered: dict[str, Cause] = {}
    for title, differences in found:
        seen: set[str] = set()
        for number, difference in enumerate(differences):
            for text in set(_texts(difference)):
                cause = gathered.setdefault(text, Cause(text))
                cause.versions.add(difference.version)
                if text in seen:
                    continue
                seen.add(text)
                (cause.later_in if number else cause.first_in).append(title)
    return sorted(gathered.values(), key=lambda cause: (-len(cause.first_in), -len(cause.later_in)))


def without(value: Any, configs: Collection[str]) -> Any:
    """An answer without these configs, and without moments in its texts."""
    return _without_moments(without_configs(value, configs))


def _without_moments(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_without_moments, value))
    if isinstance(value, dict):
        return {name: _without_moments(each) for name, each in value.items()}
    return MOMENT.sub("<moment>", value) if isinstance(value, str) else value


def explained_by(configs: Collection[str]) -> Rule:
    """A rule that leaves these configs out of all answers, and moments out of texts."""

    def rule(
        found: Sequence[Difference], steps: Sequence[Step], old: Transcript, new: Transcript
    ) -> list[Difference]:
        return in_part(found, partial(without, configs=configs))

    return rule


def _texts(found: Found) -> Iterator[str]:
    for path, old, new in _leaves(found.old, found.new):
        yield f"{found.name} {path or 'the whole'}: {_short(old)} → {_short(new)}"


def _leaves(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The smallest parts that differ."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            yield from _leaves(old[key], new[key], f"{path}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _leaves(one, other, f"{path}[]")
    elif isinstance(old, list) and isinstance(new, list):
        yield (
            f"{path}[]",
            [each for each in old if each not in new],
            [each for each in new if each not in old],
        )
    elif old != new:
        yield path, old, new


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
