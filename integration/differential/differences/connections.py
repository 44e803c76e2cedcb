"""Differences in when requests are read, and in what is announced."""

from __future__ import annotations

from integration.differential.differences.configs import described_config
from integration.differential.differences.guest import CLOSED, NO_ANSWER, Guest, error_of
from integration.differential.differences.member import Member, coordinated
from integration.differential.differences.scenario import difference
from kshim.testing.wire import payload
from schemas.api_key import ApiKey
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.metadata import MetadataRequest


@difference("D-reads-ahead", apache_kafka=NO_ANSWER, kshim="UNKNOWN_MEMBER_ID")
def a_parked_join_with_a_leave_behind_it(guest: Guest) -> str:
    coordinated(guest)
    alice, bob = Member(guest, "alice"), Member(guest, "bob")
    alice.enter()
    bob.take_id()
    bob.send_join()
    bob.send_leave()
    return error_of(bob.hear_join())


@difference("D-fetch-gives-way", apache_kafka=NO_ANSWER, kshim="NONE")
def a_fetch_that_waits_with_a_request_behind_it(guest: Guest) -> str:
    guest.create("t")
    guest.send(12, guest.fetching((("t", 0, 0),), version=12, max_wait_ms=60_000))
    guest.send(0, ApiVersionsRequest())
    return error_of(guest.next_answer(12, ApiKey.FETCH))


@difference(
    "D-features",
    apache_kafka=[
        *("eligible.leader.replicas.version", "group.version", "kraft.version", "metadata.version"),
        *("share.version", "streams.version", "transaction.version"),
    ],
    kshim=["group.version", "transaction.version"],
)
def features_that_are_announced(guest: Guest) -> list[str]:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    return sorted(feature.name for feature in guest.answer(4, request).supported_features)


@difference("D-properties-utf-8", apache_kafka="KÃ¶ln", kshim="Köln")
def a_name_in_the_servers_properties(guest: Guest) -> str:
    return str(described_config(guest, "broker.rack").value)


CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303")
CLOSE_NOTIFY = bytes.fromhex("15030300020100")


@difference("D-other-protocols", apache_kafka=b"", kshim=CLOSE_NOTIFY)
def tls_at_a_plain_listener(guest: Guest) -> bytes:
    return guest.heard_of(CLIENT_HELLO)


@difference("D-other-protocols", apache_kafka=b"", kshim=b"HTTP/1.1 400 Bad Request")
def http_at_a_kafka_listener(guest: Guest) -> bytes:
    return guest.heard_of(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n").partition(b"\r\n")[0]


@difference("D-other-protocols", apache_kafka=b"", kshim=b"-ERR")
def redis_at_a_kafka_listener(guest: Guest) -> bytes:
    return guest.heard_of(b"*1\r\n$4\r\nPING\r\n").partition(b" ")[0]


TOKENS = {
    *(ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN),
    *(ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN),
}
OF_NEW_GROUPS = {
    ApiKey.STREAMS_GROUP_DESCRIBE,
    *(ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE),
    *(ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE),
    *(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS),
    *(ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS),
}


@difference("D-no-delegation-tokens", apache_kafka=TOKENS, kshim=set())
def requests_about_tokens(guest: Guest) -> set[int]:
    return _announced(guest) & TOKENS


@difference("D-hosts-are-not-looked-up", apache_kafka="INVALID_REQUEST", kshim="NONE")
def a_quota_of_an_unknown_host(guest: Guest) -> str:
    return _set_quota(guest, "ip", "no-such-host.invalid", "connection_creation_rate")


def _set_quota(guest: Guest, entity_type: str, name: str, key: str) -> str:
    """Set the smallest quota there is."""
    entity = (EntityData(entity_type=entity_type, entity_name=name),)
    entry = RequestEntryData(entity=entity, ops=(OpData(key=key, value=1.0),))
    return guest.error(1, AlterClientQuotasRequest(entries=(entry,)))


@difference("D-no-new-groups", apache_kafka=OF_NEW_GROUPS, kshim=set())
def requests_of_new_groups(guest: Guest) -> set[int]:
    return _announced(guest) & OF_NEW_GROUPS


def _announced(guest: Guest) -> set[int]:
    """The keys of the APIs that a client may use."""
    return {api.api_key for api in guest.answer(0, ApiVersionsRequest()).api_keys}


@difference("D-many-elements", apache_kafka="NONE", kshim=CLOSED)
def a_request_of_many_elements(guest: Guest) -> str:
    return guest.error(0, ListTransactionsRequest(producer_id_filters=tuple(range(100_001))))


@difference("D-name-too-long", apache_kafka=NO_ANSWER, kshim=CLOSED)
def a_name_that_is_too_long_to_be_repeated(guest: Guest) -> str:
    """Each invalid byte is read as U+FFFD, which takes three bytes."""
    name = b"\xff" * 20_000
    topics = (1).to_bytes(4) + len(name).to_bytes(2) + name
    guest.send_bytes(payload(1, MetadataRequest(topics=()), "guest")[:-4] + topics)
    return error_of(guest.next_answer(1, ApiKey.METADATA))
