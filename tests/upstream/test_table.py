"""The table of what passes through: complete, consistent, and what is announced of it."""

from __future__ import annotations

from typing import get_type_hints

from kshim.answering.views import AnyView, GroupsView, MembersView, OffsetsView
from kshim.api.api_versions import ANNOUNCED
from kshim.network.dispatch import API
from kshim.upstream.table import BETWEEN_BROKERS, TABLE, Way, announced, entry
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS

ALL = {key: range(100) for key in ApiKey}


def told(upstream: dict[ApiKey, range]) -> dict[int, range]:
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in announced(upstream)}


def test_every_api_that_kshim_serves_has_its_way() -> None:
    assert set(VERSIONS) <= set(TABLE)


def test_what_is_in_no_table_is_for_brokers() -> None:
    assert entry(ApiKey.ENVELOPE) is BETWEEN_BROKERS
    assert entry(ApiKey.HEARTBEAT).way is Way.OURS


def test_all_but_the_forwarded_say_why() -> None:
    assert [
        key.name for key, entry in TABLE.items() if entry.way is not Way.FORWARDED and not entry.why
    ] == []


def test_the_apis_that_kshim_answers_use_only_what_an_upstream_has() -> None:
    """mypy checks that `Here` implements these views."""
    used = {
        key: get_type_hints(API[key].function)["broker"]
        for key, entry in TABLE.items()
        if entry.way is Way.OURS
    }
    assert set(used.values()) == {AnyView, GroupsView, MembersView, OffsetsView}


def test_the_versions_are_those_that_both_know() -> None:
    found = told({**ALL, ApiKey.METADATA: range(5, 9), ApiKey.LIST_OFFSETS: range(3)})
    assert found[ApiKey.METADATA] == range(5, 9)
    assert found[ApiKey.LIST_OFFSETS] == range(1, 3)
    assert found[ApiKey.END_TXN] == VERSIONS[ApiKey.END_TXN]
    assert found[ApiKey.PRODUCE] == ANNOUNCED[ApiKey.PRODUCE]


def test_what_schemas_does_not_know_passes_in_all_versions() -> None:
    assert told({ApiKey.PUSH_TELEMETRY: range(2, 5)})[ApiKey.PUSH_TELEMETRY] == range(2, 5)


def test_groups_are_announced_whatever_the_upstream_knows() -> None:
    found = told({ApiKey.HEARTBEAT: range(1)})
    assert found[ApiKey.HEARTBEAT] == VERSIONS[ApiKey.HEARTBEAT]
    assert found[ApiKey.SYNC_GROUP] == VERSIONS[ApiKey.SYNC_GROUP]
    assert found[ApiKey.CONSUMER_GROUP_HEARTBEAT] == VERSIONS[ApiKey.CONSUMER_GROUP_HEARTBEAT]


def test_what_the_upstream_does_not_have_is_not_announced() -> None:
    found = told({ApiKey.METADATA: range(100, 101)})
    assert ApiKey.METADATA not in found
    assert ApiKey.PRODUCE not in found


def test_no_answer_in_parts_holds_addresses() -> None:
    """A Fetch from v16 on may name brokers behind megabytes of records (KIP-951)."""
    assert told(ALL)[ApiKey.FETCH] == range(4, 16)


def test_hidden_apis_are_not_announced() -> None:
    hidden = {key for key in ApiKey if entry(key).way is Way.HIDDEN}
    assert not hidden & told(ALL).keys()
    assert ApiKey.CREATE_DELEGATION_TOKEN in hidden


def test_share_groups_and_streams_groups_are_announced_as_far_as_the_upstream_has_them() -> None:
    has = {ApiKey.SHARE_GROUP_HEARTBEAT: range(1, 2), ApiKey.SHARE_FETCH: range(1, 3)}
    found = told(has)
    assert {key: found[key] for key in has} == has
    assert ApiKey.STREAMS_GROUP_HEARTBEAT not in found
