"""kshim reads every odd request that Apache Kafka reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from integration.differential.looseness.loose import BROKEN, LOOSE, USUAL, Looseness, frame, requests, sample
from integration.differential.playing.asking import CLOSED, Address, Connection
from integration.differential.playing.pairs import Pair
from integration.differential.playing.player import errors
from kshim.api.api_versions import REFUSED
from schemas.api_key import ApiKey
from schemas.registry import decode_response

TIMEOUT_S = 30
Answers = Mapping[str, Any]
"""For each request the error codes of its answer, or why there is none."""
Frames = Mapping[tuple[ApiKey, int], bytes]
Ask = Callable[[Looseness], tuple[Answers, Answers]]


@pytest.fixture(scope="module")
def ask(pair_named: Callable[[str], Pair]) -> Ask:
    """The answers of Apache Kafka and kshim to all requests, written with a looseness."""
    pair = pair_named("plain")

    async def both(frames: Frames) -> tuple[Answers, Answers]:
        apache_kafka, kshim = await asyncio.gather(*(_answers(it, frames) for it in pair.targets))
        return apache_kafka, kshim

    def ask(looseness: Looseness) -> tuple[Answers, Answers]:
        return asyncio.run(both({asked: frame(*asked, sample(*asked), looseness) for asked in requests()}))

    return ask


@pytest.fixture(scope="module")
def usual(ask: Ask) -> tuple[Answers, Answers]:
    return ask(USUAL)


def test_both_answer_all_of_them_alike(
    usual: tuple[Answers, Answers], compared: Callable[[int], None]
) -> None:
    apache_kafka, kshim = usual
    refused = {key.name for key in REFUSED}  # D-no-new-groups: kshim reads them, and serves no such group
    differing = _differing(apache_kafka, kshim).items()
    assert not {name: told for name, told in differing if name.partition(" ")[0] not in refused}
    assert not [name for name, answer in kshim.items() if isinstance(answer, str)]
    compared(len(kshim))


@pytest.mark.parametrize("looseness", LOOSE.values(), ids=LOOSE)
def test_both_read_it(
    looseness: Looseness, ask: Ask, usual: tuple[Answers, Answers], compared: Callable[[int], None]
) -> None:
    apache_kafka, kshim = ask(looseness)
    assert not _differing(usual[0], apache_kafka)
    assert not _differing(usual[1], kshim)
    compared(len(kshim))


@pytest.mark.parametrize("looseness", BROKEN.values(), ids=BROKEN)
def test_neither_reads_it(looseness: Looseness, ask: Ask, compared: Callable[[int], None]) -> None:
    apache_kafka, kshim = ask(looseness)
    assert not _differing(apache_kafka, kshim)
    assert list(kshim.values()).count(CLOSED) > len(kshim) / 3
    compared(len(kshim))


def _differing(expected: Answers, found: Answers) -> dict[str, tuple[Any, Any]]:
    return {name: (told, found[name]) for name, told in expected.items() if found[name] != told}


async def _answers(server: Address, frames: Frames) -> Answers:
    found: dict[str, Any] = {}
    connection = await Connection.open(server)
    for (api_key, version), request in frames.items():
        answer = await _answer(connection, request)
        if isinstance(answer, bytes):
            told = sorted(set(errors(decode_response(api_key, version, answer)[1])))
        else:
            told = answer
            connection.close()
            connection = await Connection.open(server)
        found[f"{api_key.name} v{version}"] = told
    connection.close()
    return found


async def _answer(connection: Connection, request: bytes) -> Any:
    answer: asyncio.Future[bytes | str] = asyncio.get_running_loop().create_future()
    connection.send(request, answer.set_result)
    try:
        return await asyncio.wait_for(answer, TIMEOUT_S)
    except TimeoutError:
        return "no answer"
