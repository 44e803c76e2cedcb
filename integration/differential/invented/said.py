"""A history as source text: it can be printed, pasted, and shrunk line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from integration.differential.words import admin as admin_verbs
from integration.differential.words import groups as verbs
from integration.differential.words import records as record_verbs
from integration.differential.words import transactions as transaction_verbs
from integration.differential.words.history import History, Step, flat

VERBS = {**vars(admin_verbs), **vars(record_verbs), **vars(transaction_verbs), **vars(verbs)}


@dataclass(frozen=True)
class Said:
    """One call of a verb; str() is its source text."""

    verb: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def steps(self) -> list[Step]:
        made = VERBS[self.verb](*self.args, **dict(self.options))
        return flat([made])

    def __str__(self) -> str:
        words = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.options)]
        return f"{self.verb}({', '.join(words)})"


@dataclass(frozen=True)
class Invented:
    """A history that is still source text."""

    title: str
    era: int
    said: tuple[Said, ...]

    def history(self) -> History:
        return History(
            self.title,
            cases=(),
            steps=[each.steps() for each in self.said],
            eras=(self.era,),
            meant_by_rule=True,
        )

    def __str__(self) -> str:
        """Its source text, in the form of `histories`."""
        lines = ["    History(", f'        "{self.title}",', "        cases=[],", "        steps=["]
        lines += [f"            {each}," for each in self.said]
        lines += ["        ],", f"        eras=({self.era},),", "    ),"]
        return "\n".join(lines)
