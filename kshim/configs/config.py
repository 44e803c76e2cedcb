"""`Config`: the table of all properties with an effect, by Kafka's names.

An attribute is the property's name with "_" for ".": `config.num_partitions` is num.partitions. The table has
types, defaults, bounds and meanings. `kshim config` prints it, and `reading` makes a Config from it.

Some properties are only the default of a topic config, as log.retention.ms is of retention.ms. They are read
from `given`, because the cluster's dynamic configs win over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from kshim.configs.access import STANDARD_AUTHORIZER, authorizer_class, checked_super_users
from kshim.configs.consumer_groups import ConsumerGroupsProperties
from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.configs.java import INT_MAX, LONG_MAX, SHORT_MAX
from kshim.configs.listeners import (
    PROTOCOL_MAP,
    ListenerConfig,
    ListenerTexts,
    listeners_of,
)
from kshim.configs.per_ip import checked_per_ip
from kshim.configs.property import property_field as _property
from kshim.configs.values import (
    Secret,
    boolean,
    checked_endpoints,
    gzip_level,
    integer,
    one_of,
    optional_endpoint,
    ratio,
    retention,
    secret,
)

MAX_BROKERS = 100
IN_MEMORY = ":memory:"


def _int(default: int, doc: str, *, low: int = 1, high: int = INT_MAX, kafka_default: str = "") -> int:
    return _property(default, integer(low, high), doc, kafka_default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ConsumerGroupsProperties):
    """All properties that a user may set. `Config()` holds the defaults."""

    listeners: str = _property(
        "127.0.0.1:9092",
        str,
        "Addresses to listen on: HOST:PORT, or NAME://HOST:PORT,… for several listeners. Port 0 picks a "
        "free one. Same as --listen.",
        "PLAINTEXT://:9092",
    )
    advertised_listeners: str = _property(
        "",
        str,
        "Addresses to which clients connect, HOST:PORT or NAME://HOST:PORT. A listener without one gives "
        "each client the address that this client used. Same as --advertise.",
    )
    listener_security_protocol_map: str = _property(
        PROTOCOL_MAP,
        str,
        "The protocol of each listener, as NAME:PROTOCOL, comma-separated. PROTOCOL is PLAINTEXT, SSL, "
        "SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names: str = _property(
        "",
        str,
        "Names of listeners to ignore, such as those of a KRaft controller, which kshim does not have.",
    )
    log_dirs: str = _property(
        "./kshim-data",
        str,
        "Directory for topics, records, offsets and groups. :memory: keeps nothing on disk. Same as "
        "--data-dir.",
        "/tmp/kafka-logs",
    )
    node_id: int = _int(1, "This broker's id, as clients see it.", low=0, kafka_default="none")
    brokers: int = _int(
        1,
        "Number of brokers that this process plays. Node ids count up from node.id, ports from the "
        "listener's port. Same as --brokers.",
        high=MAX_BROKERS,
        kafka_default="none",
    )
    control_path: str = _property(
        "",
        str,
        "Socket through which commands such as `kshim cluster` reach the server. Default: control.sock in "
        "the data directory; none with :memory:. Same as --control.",
        "none",
    )
    http_listener: Endpoint | None = _property(
        None,
        optional_endpoint,
        "Address of the web page, its JSON and the metrics, HOST:PORT. Port 0 picks a free one. Off if "
        "empty. Any address other than loopback needs http.token. Same as --http.",
        "none",
    )
    http_token: Secret = _property(
        Secret(),
        secret,
        "Secret that clients of http.listener send: as Authorization: Bearer TOKEN, or for the page once "
        "as /?token=TOKEN. Without it only this machine can connect.",
        "none",
    )
    http_steering_enable: bool = _property(
        False,
        boolean,
        "If true, every client of http.listener may also run the commands that change something.",
        "none",
    )
    authorizer_class_name: str = _property(
        "",
        authorizer_class,
        f"{STANDARD_AUTHORIZER}, or nothing. If nothing is set, every client may do everything. With the "
        "authorizer ACLs decide; admin clients and kafka-acls create them.",
    )
    super_users: str = _property(
        "",
        checked_super_users,
        "Principals that may do everything, whatever the ACLs say: User:alice;User:bob.",
    )
    allow_everyone_if_no_acl_found: bool = _property(
        False,
        boolean,
        "If true, every client may do everything with a topic, group or transactional id to which no ACL "
        "applies.",
    )
    default_replication_factor: int = _int(
        1, "Number of replicas of a new topic, if the request does not give it.", high=SHORT_MAX
    )
    num_partitions: int = _int(1, "Number of partitions of a new topic, if the request does not give it.")
    auto_create_topics_enable: bool = _property(
        True, boolean, "If true, a topic is created when a client asks for its metadata or produces to it."
    )
    message_max_bytes: int = _int(
        1048588, "Largest record batch that a producer may send, in bytes, after compression.", low=0
    )
    max_decompressed_message_bytes: int = _int(
        2**31 - 9,
        "Largest record in a compressed batch, in bytes, after decompression.",
        low=1,
        high=2**31 - 9,
    )
    log_message_timestamp_type: str = _property(
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "CreateTime: records keep the producer's time. LogAppendTime: records get the broker's time.",
    )
    log_message_timestamp_before_max_ms: int = _int(
        LONG_MAX,
        "How far a record's time may lie before the broker's time. Older records are refused.",
        low=0,
        high=LONG_MAX,
    )
    log_message_timestamp_after_max_ms: int = _int(
        3600000,
        "How far a record's time may lie after the broker's time. Later records are refused.",
        low=0,
        high=LONG_MAX,
    )
    log_cleanup_policy: str = _property(
        "delete",
        one_of("delete", "compact", "compact,delete", "delete,compact"),
        "Cleanup policy of topics that set none. With compact, every record must have a key.",
    )
    log_retention_ms: int | None = _property(
        None,
        retention(LONG_MAX),
        "How long records are kept in topics with cleanup.policy=delete; -1 is for ever. If this is not "
        "set, log.retention.minutes counts, else log.retention.hours.",
    )
    log_retention_minutes: int | None = _property(
        None,
        retention(INT_MAX),
        "Like log.retention.ms, but in minutes. Counts if log.retention.ms is not set.",
    )
    log_retention_hours: int = _property(
        168,
        retention(INT_MAX),
        "Like log.retention.ms, but in hours. Counts if neither log.retention.ms nor "
        "log.retention.minutes is set. 168 is a week.",
    )
    log_retention_bytes: int = _int(
        -1,
        "Size of a partition, in bytes, above which its oldest records are removed; -1 is no limit.",
        low=-LONG_MAX - 1,
        high=LONG_MAX,
    )
    log_retention_check_interval_ms: int = _int(
        300000,
        "How often the server looks for records that exceed their retention, and removes them.",
        high=LONG_MAX,
    )
    flush_policy: str = _property(
        "commit",
        one_of("commit", "os"),
        "When records are written to disk. commit: before they are acknowledged. os: when the operating "
        "system chooses; then a crash of the server loses nothing, but a loss of power may cost the last "
        "second.",
        "none",
    )
    compression_type: str = _property(
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Compression of record batches in topics that do not set it. producer keeps batches as they came.",
    )
    compression_gzip_level: int = _property(
        -1, gzip_level, "Level of gzip, if compression.type is gzip; -1 is gzip's own default."
    )
    compression_lz4_level: int = _int(9, "Level of lz4, if compression.type is lz4.", low=1, high=17)
    compression_zstd_level: int = _int(3, "Level of zstd, if compression.type is zstd.", low=-131072, high=22)
    min_insync_replicas: int = _int(
        1, "Number of in-sync replicas that a record with acks=all needs, in topics that do not set it."
    )
    log_cleaner_delete_retention_ms: int = _int(
        86400000, "How long a compacted topic keeps a tombstone.", low=0, high=LONG_MAX
    )
    log_cleaner_min_cleanable_ratio: float = _property(
        0.5, ratio, "Share of a compacted topic that may be uncompacted, from 0 to 1."
    )
    log_cleaner_min_compaction_lag_ms: int = _int(
        0, "Shortest time until a record of a compacted topic is compacted.", low=0, high=LONG_MAX
    )
    fetch_max_bytes: int = _int(
        57671680, "Largest number of bytes of records in one Fetch response.", low=1024
    )
    max_incremental_fetch_session_cache_slots: int = _int(
        1000,
        "Largest number of fetch sessions. A client without a session names all its partitions in each "
        "Fetch.",
        low=0,
    )
    group_heartbeat_park_enable: bool = _property(
        True,
        boolean,
        "If true, the answer to a heartbeat may wait until a rebalance begins, so that members learn of "
        "the rebalance at once.",
        "none",
    )
    group_rebalances_max_bytes: int = _int(
        33554432,
        "Memory for the last rebalances of all groups, in bytes. `kshim why` shows these rebalances.",
        low=0,
        kafka_default="none",
    )
    group_rebalances_topic_enable: bool = _property(
        False,
        boolean,
        "If true, each rebalance is also written to the topic kshim.rebalances, as JSON.",
        "none",
    )
    group_min_session_timeout_ms: int = _int(
        6000, "Smallest session timeout that a group member may ask for."
    )
    group_max_session_timeout_ms: int = _int(
        1800000, "Largest session timeout that a group member may ask for."
    )
    group_initial_rebalance_delay_ms: int = _int(
        0,
        "How long the first rebalance of an empty group waits for more members. With 0, the first "
        "consumer gets its partitions at once, which suits tests and laptops. Kafka's 3000 saves "
        "rebalances if many consumers start together.",
        low=0,
        kafka_default="3000",
    )
    group_max_size: int = _int(INT_MAX, "Largest number of members of one group.")
    offset_metadata_max_bytes: int = _int(
        4096, "Longest metadata string of a committed offset, in bytes.", low=0
    )
    offsets_retention_minutes: int = _int(
        10080,
        "How long committed offsets are kept after the last member has left the group. For topics to "
        "which no member subscribes, the time counts from the commit. 10080 is a week.",
    )
    offsets_retention_check_interval_ms: int = _int(
        600000,
        "How often the server looks for expired offsets and for groups without offsets, and removes them.",
        high=LONG_MAX,
    )
    offsets_topic_num_partitions: int = _int(
        50, "Number of partitions of __consumer_offsets. It is fixed when the data directory is first used."
    )
    offsets_topic_replication_factor: int = _int(
        3,
        "Number of replicas of __consumer_offsets, at most one on each broker. It is fixed when the data "
        "directory is first used.",
        high=SHORT_MAX,
    )
    transaction_state_log_num_partitions: int = _int(
        50,
        "Number of partitions of __transaction_state. It is fixed when the first transactional producer "
        "starts.",
    )
    transaction_state_log_replication_factor: int = _int(
        3,
        "Number of replicas of __transaction_state, at most one on each broker. It is fixed when the "
        "first transactional producer starts.",
        high=SHORT_MAX,
    )
    transaction_state_log_min_isr: int = _int(
        2,
        "Number of in-sync replicas of __transaction_state that a record needs, at most one on each broker.",
    )
    transaction_max_timeout_ms: int = _int(900000, "Longest transaction timeout that a producer may ask for.")
    transactional_id_expiration_ms: int = _int(
        604800000, "How long the server remembers an unused transactional id. 604800000 is a week."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _int(
        10000, "How often the server looks for transactions past their timeout, and aborts them."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = _int(
        3600000, "How often the server looks for expired transactional ids, and removes them."
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = _int(
        100,
        "How long Produce waits for a producer's previous transaction to end before it answers with an "
        "error.",
        low=0,
    )
    add_partitions_to_txn_retry_backoff_ms: int = _int(
        20, "How often a waiting Produce checks whether the producer's previous transaction has ended.", low=1
    )
    producer_id_expiration_ms: int = _int(
        86400000, "How long a partition remembers the sequence numbers of a producer that sends nothing."
    )
    producer_id_expiration_check_interval_ms: int = _int(
        600000, "How often the server looks for producers past producer.id.expiration.ms, and forgets them."
    )
    socket_request_max_bytes: int = _int(
        104857600, "Largest request, in bytes. A client that announces a larger one is disconnected."
    )
    queued_max_request_bytes: int = _int(
        -1,
        "Memory for unfinished requests and unread replies, in bytes. Beyond it, the server stops reading "
        "the largest requests. -1 is 128 MiB.",
        low=-1,
        high=LONG_MAX,
    )
    max_connections: int = _int(
        INT_MAX,
        "Largest number of connections to one broker. Further clients wait until a connection is closed.",
    )
    max_connections_per_ip: int = _int(
        INT_MAX,
        "Largest number of connections from one address to one broker. Further connections are closed.",
        low=0,
    )
    max_connections_per_ip_overrides: str = _property(
        "",
        checked_per_ip,
        "Like max.connections.per.ip, for single addresses or host names: HOST:COUNT,HOST:COUNT.",
    )
    max_connection_creation_rate: int = _int(
        INT_MAX,
        "Largest number of connections that a broker accepts per second. Further clients wait.",
        low=0,
    )
    quota_window_num: int = _int(
        11, "Number of samples from which the rate of a client with a quota is computed."
    )
    quota_window_size_seconds: int = _int(1, "Length of each sample that quota.window.num counts.")
    controller_quota_window_num: int = _int(
        11,
        "Like quota.window.num, for controller_mutation_rate. Together with "
        "controller.quota.window.size.seconds it decides how many partitions may be created at once.",
    )
    controller_quota_window_size_seconds: int = _int(
        1, "Like quota.window.size.seconds, for controller_mutation_rate."
    )
    connections_max_idle_ms: int = _int(
        600000,
        "How long a connection may be idle before the server closes it; -1 is for ever.",
        low=-1,
        high=LONG_MAX,
    )
    sasl_enabled_mechanisms: str = _property(
        "",
        str,
        "Mechanisms with which clients may authenticate at listeners with SASL_PLAINTEXT or SASL_SSL: "
        "some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, comma-separated.",
        "GSSAPI",
    )
    sasl_jaas_config: Secret = _property(
        Secret(),
        Secret,
        "The users of PLAIN and the options of OAUTHBEARER, usually set for one listener and mechanism: "
        "listener.name.LISTENER.plain.sasl.jaas.config.",
    )
    sasl_server_max_receive_size: int = _int(
        524288, "Largest request of a client that has not authenticated, in bytes."
    )
    connections_max_reauth_ms: int = _int(
        0,
        "How long a client may use a connection before it must authenticate again; 0 is for ever (KIP-368).",
        low=0,
        high=LONG_MAX,
    )
    connection_failed_authentication_delay_ms: int = _int(
        100,
        "How long the server waits after a failed authentication before it answers and closes the "
        "connection.",
        low=0,
    )
    sasl_oauthbearer_jwks_endpoint_url: str = _property(
        "",
        str,
        "Keys that sign the tokens of OAUTHBEARER: file:///PATH of a JWKS file. Without it, unsecured "
        "tokens are accepted, which anybody can make.",
    )
    sasl_oauthbearer_expected_audience: str = _property(
        "", str, "Audiences of which a signed token must name one."
    )
    sasl_oauthbearer_allow_unverified_audience: bool = _property(
        False, boolean, "If true, a signed token may be for any audience."
    )
    sasl_oauthbearer_expected_issuer: str = _property("", str, "Issuer that a signed token must name.")
    sasl_oauthbearer_allow_unverified_issuer: bool = _property(
        False, boolean, "If true, a signed token may be of any issuer."
    )
    sasl_oauthbearer_scope_claim_name: str = _property(
        "scope", str, "Name of the claim with a token's scope."
    )
    sasl_oauthbearer_sub_claim_name: str = _property(
        "sub", str, "Name of the claim with a token's user name."
    )
    sasl_oauthbearer_clock_skew_seconds: int = _int(
        30, "How far the clock of a token's issuer may differ from this machine's clock.", low=0
    )
    upstream_bootstrap_servers: str = _property(
        "",
        checked_endpoints,
        "Addresses of a Kafka cluster to stand in front of, HOST:PORT, comma-separated. Records stay in "
        "that cluster, and kshim coordinates the groups. Same as --upstream.",
        "none",
    )
    upstream_start_timeout_ms: int = _int(
        10000,
        "How long kshim tries, at its start, to reach one of upstream.bootstrap.servers.",
        low=0,
        kafka_default="none",
    )
    given: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The texts that the user set, by Kafka's names, including those of properties without effect."""

    @property
    def listener_configs(self) -> tuple[ListenerConfig, ...]:
        """The listeners for clients. Raises WrongListener, except for a Config from `new_config`, which has
        checked them.
        """
        return listeners_of(
            ListenerTexts(
                self.listeners,
                self.advertised_listeners,
                self.listener_security_protocol_map,
                self.controller_listener_names,
                self.brokers,
            )
        )

    @property
    def broker_names(self) -> Mapping[str, HostPattern]:
        """The pattern of the brokers' names, by listener, for listeners at which all brokers share a port.
        Raises like `listener_configs`.
        """
        pattern = self.upstream_advertised_host_pattern
        if pattern is None or not self.upstream:
            return {}
        return {each.name: pattern for each in self.listener_configs if each.protocol.is_tls}

    @property
    def upstream(self) -> tuple[Endpoint, ...]:
        """The upstream's addresses; empty if there is no upstream, and kshim stores the records itself."""
        return tuple(map(Endpoint.parse, filter(None, self.upstream_bootstrap_servers.split(","))))

    @property
    def in_memory(self) -> bool:
        """True if nothing is kept on disk."""
        return self.log_dirs == IN_MEMORY

    @property
    def log_dir(self) -> str:
        """The data directory as clients see it: an absolute path, or :memory:."""
        return self.log_dirs if self.in_memory else str(Path(self.log_dirs).absolute())


class Property(NamedTuple):
    """One row of `kshim config`."""

    name: str
    default: str
    kafka_default: str
    """Empty if Kafka's default is the same."""
    doc: str
    parse: Callable[[str], object]
    is_secret: bool
    """True if its value must not be shown."""


def property_text(value: object) -> str:
    """The value of a property as a server.properties file spells it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


PROPERTIES: dict[str, Property] = {
    name: Property(
        name,
        property_text(f.default),
        f.metadata["kafka_default"],
        f.metadata["doc"],
        f.metadata["parse"],
        isinstance(f.default, Secret),
    )
    for f in fields(Config)
    if f.metadata
    for name in [f.name.replace("_", ".")]
}
