"""`kshim apis --against` lists exactly what Apache Kafka announces and kshim does not, or refuses."""

from __future__ import annotations

from collections.abc import Callable

from integration.apache_kafka.jars import RELEASE
from integration.differential.playing.pairs import Pair
from integration.support.server import Server
from kshim.api.api_versions import REFUSED
from kshim.cli.unserved import TELEMETRY, UNSERVED
from kshim.testing.wire import Wire
from schemas.messages.api_versions import ApiVersionsRequest


def announced(server: Server) -> dict[int, range]:
    with Wire(server.host, server.port) as wire:
        answer = wire.ask(0, ApiVersionsRequest())
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


def test_the_table_has_what_only_apache_kafka_announces(pair_named: Callable[[str], Pair]) -> None:
    pair = pair_named("plain")
    theirs, ours = announced(pair.apache_kafka), announced(pair.kshim)
    table = {int(key): versions for key, (versions, _) in UNSERVED[RELEASE].items()}
    assert table == {key: versions for key, versions in theirs.items() if key not in ours.keys() - REFUSED}
    assert not theirs.keys() & set(TELEMETRY)


def test_both_announce_the_same_versions(pair_named: Callable[[str], Pair]) -> None:
    pair = pair_named("plain")
    theirs, ours = announced(pair.apache_kafka), announced(pair.kshim)
    assert {key: theirs.get(key) for key in ours} == ours
