"""Invents histories: what clients might say, in a random order.

`invent(number, of)` is the same history every time. It does not know the servers' answers: clients use
symbols for the ids that they are given, so a history keeps its sense whatever is left out of it. Each history
has a temper: how careless its clients are about their identity, and what they mostly say. So some histories
get far and others go astray.
"""

from __future__ import annotations

import random

from integration.differential.invented.admin import Admin
from integration.differential.invented.author import Author
from integration.differential.invented.groups import Groups
from integration.differential.invented.records import Records
from integration.differential.invented.said import Invented, Said
from integration.differential.invented.transactions import Transactions

__all__ = ["AUTHORS", "Invented", "Said", "invent"]

AUTHORS: dict[str, type[Author]] = {
    "groups": Groups,
    "records": Records,
    "admin": Admin,
    "transactions": Transactions,
}
"""The author of each subject's histories."""


def invent(number: int, of: str = "groups") -> Invented:
    author = AUTHORS[of](random.Random(number))
    author.write()
    return Invented(f"invented {of} {number}", author.era, tuple(author.said))
