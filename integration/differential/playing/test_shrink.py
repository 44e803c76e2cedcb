"""Invented histories can be printed as source text, read back, and shrunk."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from integration.differential.invented import AUTHORS, Invented, Said, invent
from integration.differential.playing.shrink import shrink
from integration.differential.words import admin as admin_verbs
from integration.differential.words import batches, history
from integration.differential.words import groups as verbs
from integration.differential.words import records as record_verbs
from integration.differential.words import transactions as transaction_verbs

WORDS = {
    name: word
    for module in (uuid, history, batches, admin_verbs, record_verbs, transaction_verbs, verbs)
    for name, word in vars(module).items()
}


@pytest.mark.parametrize("of", AUTHORS)
@pytest.mark.parametrize("number", range(50))
def test_the_words_mean_the_history(number: int, of: str) -> None:
    invented = invent(number, of)
    assert invent(number, of) == invented
    (pasted,) = eval(f"[{invented}]", dict(WORDS))
    assert pasted.at(invented.era) == invented.history().at(invented.era)


def test_what_does_not_matter_is_left_out() -> None:
    said = [Said("describe"), Said("pause", (0,))] * 20
    needed = [
        Said("join", ("alice", "range"), (("wait", False), ("session_ms", 60_000), ("tells", " 2"))),
        Said("leave", ("alice",), (("wait", False),)),
    ]
    said[7:7], said[31:31] = [needed[0]], [needed[1]]

    async def differs(candidate: Invented) -> bool:
        """True if a client joins with `tells`, and a client leaves after that."""
        joins = [n for n, each in enumerate(candidate.said) if "tells" in dict(each.options)]
        leaves = [n for n, each in enumerate(candidate.said) if each.verb == "leave"]
        return bool(joins and leaves and joins[0] < leaves[-1])

    small = asyncio.run(shrink(Invented("long", 9, tuple(said)), differs))
    assert [str(each) for each in small.said] == [
        "join('alice', wait=False, tells=' 2')",
        "leave('alice')",
    ]
