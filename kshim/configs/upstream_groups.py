"""The properties in front of an upstream: of the topic that stores the groups, of the sharing of groups by
several kshim, and of the brokers' names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kshim.configs.host_pattern import HostPattern, host_pattern
from kshim.configs.java import INT_MAX, SHORT_MAX
from kshim.configs.property import property_field
from kshim.configs.tls import TlsProperties
from kshim.configs.values import boolean, integer

NONE = "none"
CLASSIC_AND_CONSUMER = "classic,consumer"
AS_MANY_AS_CAN_BE = -1


def _topic(text: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", text) or text in (".", ".."):
        raise ValueError("expected the name of a topic: at most 249 letters, digits, '.', '_' and '-'")
    return text


def _group_id(text: str) -> str:
    if not text:
        raise ValueError("expected a group id")
    return text


def _protocols(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if sorted(names) not in (["classic"], ["classic", "consumer"]):
        raise ValueError("expected classic,consumer or classic")
    return ",".join(sorted(names))


def _replicas(text: str) -> int:
    value = integer(AS_MANY_AS_CAN_BE, SHORT_MAX)(text)
    if value == 0:
        raise ValueError(f"expected {AS_MANY_AS_CAN_BE}, or an integer of at least 1")
    return value


@dataclass(frozen=True, slots=True, kw_only=True, init=False, eq=False, repr=False)
class UpstreamGroupsProperties(TlsProperties):
    """The table of properties, a base of `Config`."""

    upstream_groups_topic: str = property_field(
        "__kshim_groups",
        _topic,
        "Topic of the upstream in which kshim stores groups. All kshim processes that share groups use "
        "the same topic.",
        NONE,
    )
    upstream_groups_topic_partitions: int = property_field(
        50,
        integer(1, 10_000),
        "Number of partitions with which kshim creates that topic. It cannot be changed later.",
        NONE,
    )
    upstream_groups_topic_replication_factor: int = property_field(
        AS_MANY_AS_CAN_BE,
        _replicas,
        "Number of replicas with which kshim creates that topic. -1 means 3, or as many as the cluster "
        "has brokers.",
        NONE,
    )
    upstream_groups_group_id: str = property_field(
        "__kshim",
        _group_id,
        "Group of the upstream in which all kshim processes that share groups are members. It decides "
        "which process coordinates which groups.",
        NONE,
    )
    upstream_groups_session_timeout_ms: int = property_field(
        6000,
        integer(1000, INT_MAX),
        "How long a kshim process may be silent before other processes take over its groups. The upstream "
        "allows no less than its group.min.session.timeout.ms, by default 6000.",
        NONE,
    )
    upstream_groups_lease_ms: int = property_field(
        400,
        integer(100, 10_000),
        "How long a kshim process may answer after the upstream has proven that no other process "
        "coordinates the same groups. A process that takes over waits as long before it answers.",
        NONE,
    )
    upstream_groups_adopt_enable: bool = property_field(
        True,
        boolean,
        "If true, a group whose first member joins at kshim goes on with the offsets that it has committed "
        "at the upstream. If false, only kshim adopt copies them.",
        NONE,
    )
    upstream_groups_protocols: str = property_field(
        CLASSIC_AND_CONSUMER,
        _protocols,
        "The protocols of groups that kshim serves: classic,consumer or classic. Without consumer, members "
        "with group.protocol=consumer go on to the upstream, which serves their groups.",
        NONE,
    )
    upstream_drain_timeout_ms: int = property_field(
        5000,
        integer(0, INT_MAX),
        "How long a kshim that ends may take to hand its clients' connections over to other kshim processes.",
        NONE,
    )
    upstream_offsets_mirror_enable: bool = property_field(
        True,
        boolean,
        "If true, kshim also commits the offsets of its groups at the upstream, in groups of the same names.",
        NONE,
    )
    upstream_sasl_pass_through_enable: bool = property_field(
        False,
        boolean,
        "If true, clients authenticate by SASL at the upstream, through kshim, and their requests count "
        "there as their own: for ACLs, quotas and audits. If false, clients authenticate at kshim, and are "
        "all kshim to the upstream.",
        NONE,
    )
    upstream_identities_file: str = property_field(
        "",
        str,
        "File with the credentials with which each client's requests go to the upstream, by the name of the "
        "principal that the client has at kshim: alice.sasl.jaas.config=…. kshim reads it again when it has "
        "changed. Without it, all clients are kshim to the upstream.",
        NONE,
    )
    upstream_advertised_host_pattern: HostPattern | None = property_field(
        None,
        host_pattern,
        "Names by which clients reach the brokers at listeners with TLS, such as "
        "b$(nodeId).kafka.example.com. Such a listener has one port for all brokers then: the server name of "
        "the TLS handshake says which one is meant. Without it, each broker has its own port.",
        NONE,
    )

    @property
    def passes_consumer_groups(self) -> bool:
        """True if groups of the consumer protocol are the upstream's."""
        return self.upstream_groups_protocols != CLASSIC_AND_CONSUMER

    @property
    def shared_settings(self) -> Mapping[str, str]:
        """The texts of the properties that all kshim with shared groups should set alike, by property."""
        return {
            "upstream.groups.topic": self.upstream_groups_topic,
            "upstream.groups.session.timeout.ms": str(self.upstream_groups_session_timeout_ms),
            "upstream.groups.lease.ms": str(self.upstream_groups_lease_ms),
            "upstream.groups.protocols": self.upstream_groups_protocols,
            "upstream.groups.adopt.enable": str(self.upstream_groups_adopt_enable).lower(),
            "upstream.offsets.mirror.enable": str(self.upstream_offsets_mirror_enable).lower(),
            "upstream.sasl.pass.through.enable": str(self.upstream_sasl_pass_through_enable).lower(),
            "upstream.identities.file": "a file" if self.upstream_identities_file else "none",
        }

    @property
    def upstream_groups_fault(self) -> str:
        """The fault in the combination of these properties; empty if there is none."""
        session_ms, lease_ms = self.upstream_groups_session_timeout_ms, self.upstream_groups_lease_ms
        if 2 * lease_ms <= session_ms:
            return ""
        return (
            f"upstream.groups.lease.ms={lease_ms}: expected at most half of "
            f"upstream.groups.session.timeout.ms, which is {session_ms}"
        )
