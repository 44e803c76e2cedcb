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
from typing import Any

from kshim.configs.access import STANDARD_AUTHORIZER, authorizer_class, checked_super_users
from kshim.configs.endpoint import Endpoint
from kshim.configs.java import INT_MAX, LONG_MAX, SHORT_MAX
from kshim.configs.listeners import (
    PROTOCOL_MAP,
    ListenerConfig,
    ListenerTexts,
    listeners_of,
)
from kshim.configs.per_ip import checked_per_ip
from kshim.configs.property import property_field as _property
from kshim.configs.upstream_groups import UpstreamGroupsProperties
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


def _int(default: int, doc: str, *, low: int = 1, high: int = INT_MAX, kafka_default: str = "") -> Any:
    return _property(default, integer(low, high), doc, kafka_default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(UpstreamGroupsProperties):
    """All properties that a user may set. `Config()` holds the defaults."""

    listeners: str = _property(
        "127.0.0.1:9092",
        str,
        "Where to listen: HOST:PORT, or NAME://HOST:PORT,… for several listeners; port 0 picks a free one. "
        "Same as --listen.",
        "PLAINTEXT://:9092",
    )
    advertised_listeners: str = _property(
        "",
        str,
        "Addresses told to clients, HOST:PORT or NAME://HOST:PORT. Where a listener has none, each client is "
        "told the address that it connected to. Same as --advertise.",
    )
    listener_security_protocol_map: str = _property(
        PROTOCOL_MAP,
        str,
        "What is spoken at each listener, as NAME:PROTOCOL, comma-separated; PROTOCOL is PLAINTEXT or SSL or "
        "SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names: str = _property(
        "",
        str,
        "Names in listeners that are left out: a KRaft controller's, which is not needed here.",
    )
    log_dirs: str = _property(
        "./kshim-data",
        str,
        "Directory for topics, records, offsets and groups; :memory: keeps nothing. Same as --data-dir.",
        "/tmp/kafka-logs",
    )
    node_id: int = _int(1, "This broker's id, as clients see it.", low=0, kafka_default="none")
    brokers: int = _int(
        1,
        "How many brokers this process plays: node ids count up from node.id, ports from that of the "
        "listener. Same as --brokers.",
        high=MAX_BROKERS,
        kafka_default="none",
    )
    control_path: str = _property(
        "",
        str,
        "Socket through which `kshim cluster` reaches the server. Default: control.sock in the data "
        "directory; none with :memory:. Same as --control.",
        "none",
    )
    http_listener: Endpoint | None = _property(
        None,
        optional_endpoint,
        "Address of the page, its JSON and the metrics, HOST:PORT; port 0 picks a free one. Off if empty. "
        "Any address but the loopback needs http.token. Same as --http.",
        "none",
    )
    http_token: Secret = _property(
        Secret(),
        secret,
        "What a client of http.listener must know: it is sent as Authorization: Bearer TOKEN, or once as "
        "/?token=TOKEN for the page. Without it only this machine can connect.",
        "none",
    )
    http_steering_enable: bool = _property(
        False,
        boolean,
        "Whether http.listener takes commands, as the control socket does: who may connect may steer.",
        "none",
    )
    authorizer_class_name: str = _property(
        "",
        authorizer_class,
        f"{STANDARD_AUTHORIZER}, or nothing: then everybody may do everything. With it ACLs say who may do "
        "what; admin clients and kafka-acls make them.",
    )
    super_users: str = _property(
        "",
        checked_super_users,
        "Who may do everything, whatever the ACLs say: User:alice;User:bob.",
    )
    allow_everyone_if_no_acl_found: bool = _property(
        False,
        boolean,
        "Whether anybody may do anything with a topic, group or transactional id that no ACL is about.",
    )
    default_replication_factor: int = _int(
        1, "Replicas of a topic that is created without a number of them.", high=SHORT_MAX
    )
    num_partitions: int = _int(1, "Partitions of a topic that is created without a number of them.")
    auto_create_topics_enable: bool = _property(
        True, boolean, "Whether a topic is created when a client asks for its metadata or produces to it."
    )
    message_max_bytes: int = _int(
        1048588, "Largest record batch a producer may send, in bytes, after compression.", low=0
    )
    log_message_timestamp_type: str = _property(
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "Whether records keep the producer's time (CreateTime) or get the broker's (LogAppendTime).",
    )
    log_message_timestamp_before_max_ms: int = _int(
        LONG_MAX,
        "How far a record's time may lie before the broker's; older records are refused.",
        low=0,
        high=LONG_MAX,
    )
    log_message_timestamp_after_max_ms: int = _int(
        3600000,
        "How far a record's time may lie after the broker's; later records are refused.",
        low=0,
        high=LONG_MAX,
    )
    log_cleanup_policy: str = _property(
        "delete",
        one_of("delete", "compact", "compact,delete", "delete,compact"),
        "Cleanup policy of topics that set none. With compact every record must have a key.",
    )
    log_retention_ms: int | None = _property(
        None,
        retention(LONG_MAX),
        "How long records are kept in topics with cleanup.policy=delete; -1 is for ever. If not set, "
        "log.retention.minutes counts, then log.retention.hours.",
    )
    log_retention_minutes: int | None = _property(
        None, retention(INT_MAX), "As log.retention.ms, in minutes, if that is not set."
    )
    log_retention_hours: int = _property(
        168,
        retention(INT_MAX),
        "As log.retention.ms, in hours, if neither that nor log.retention.minutes is set. 168 is a week.",
    )
    log_retention_bytes: int = _int(
        -1,
        "Bytes that a partition may grow to before its oldest records go; -1 is no limit.",
        low=-LONG_MAX - 1,
        high=LONG_MAX,
    )
    log_retention_check_interval_ms: int = _int(
        300000, "How often to look for records that exceed their retention, and remove them.", high=LONG_MAX
    )
    flush_policy: str = _property(
        "commit",
        one_of("commit", "os"),
        "When a record is on disk: commit, before it is acknowledged; os, when the operating system writes "
        "it: a crash of the server loses nothing, a loss of power may cost the data.",
        "none",
    )
    compression_type: str = _property(
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "How record batches are compressed in topics that do not set it; producer keeps them as they came.",
    )
    compression_gzip_level: int = _property(
        -1, gzip_level, "Level of gzip, if compression.type is gzip; -1 is gzip's own default."
    )
    compression_lz4_level: int = _int(9, "Level of lz4, if compression.type is lz4.", low=1, high=17)
    compression_zstd_level: int = _int(3, "Level of zstd, if compression.type is zstd.", low=-131072, high=22)
    min_insync_replicas: int = _int(
        1, "In-sync replicas that a record with acks=all needs, in topics that do not set it."
    )
    log_cleaner_delete_retention_ms: int = _int(
        86400000, "How long a compacted topic keeps a tombstone.", low=0, high=LONG_MAX
    )
    log_cleaner_min_cleanable_ratio: float = _property(
        0.5, ratio, "Share of a compacted topic that may be uncompacted, from 0 to 1."
    )
    fetch_max_bytes: int = _int(57671680, "Most bytes of records in a Fetch response.", low=1024)
    max_incremental_fetch_session_cache_slots: int = _int(
        1000,
        "Most fetch sessions; a client without one names all its partitions in each Fetch.",
        low=0,
    )
    group_heartbeat_park_enable: bool = _property(
        True,
        boolean,
        "Whether the answer to a heartbeat may wait for a rebalance to begin: members learn of it at once.",
        "none",
    )
    group_rebalances_max_bytes: int = _int(
        33554432,
        "Memory for the last rebalances of all groups, which kshim why tells.",
        low=0,
        kafka_default="none",
    )
    group_rebalances_topic_enable: bool = _property(
        False,
        boolean,
        "Whether each rebalance is written into the topic kshim.rebalances, as JSON.",
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
        "How long the first rebalance of an empty group waits for more members. 0 gives the first consumer "
        "its partitions at once, which suits tests and laptops; 3000, Kafka's own, saves rebalances if many "
        "consumers start together.",
        low=0,
        kafka_default="3000",
    )
    group_max_size: int = _int(INT_MAX, "Most members of one group.")
    offset_metadata_max_bytes: int = _int(
        4096, "Longest metadata string that may come with a committed offset, in bytes.", low=0
    )
    offsets_retention_minutes: int = _int(
        10080,
        "How long committed offsets are kept after the last member has left the group; for topics that no "
        "member subscribes to, after the commit. 10080 is a week.",
    )
    offsets_retention_check_interval_ms: int = _int(
        600000,
        "How often to look for expired committed offsets and for groups without any, and remove them.",
        high=LONG_MAX,
    )
    offsets_topic_num_partitions: int = _int(
        50, "Partitions of __consumer_offsets; fixed when the data directory is first used."
    )
    offsets_topic_replication_factor: int = _int(
        3,
        "Replicas of __consumer_offsets, at most one a broker. Fixed when the data directory is first used.",
        high=SHORT_MAX,
    )
    transaction_state_log_num_partitions: int = _int(
        50, "Partitions of __transaction_state; fixed when the first transactional producer starts."
    )
    transaction_state_log_replication_factor: int = _int(
        3,
        "Replicas of __transaction_state, at most one a broker. Fixed when the first transactional producer "
        "starts.",
        high=SHORT_MAX,
    )
    transaction_state_log_min_isr: int = _int(
        2, "In-sync replicas of __transaction_state that must have a record, at most one a broker."
    )
    transaction_max_timeout_ms: int = _int(900000, "Longest transaction timeout that a producer may ask for.")
    transactional_id_expiration_ms: int = _int(
        604800000, "How long an unused transactional id is remembered. 604800000 is a week."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _int(
        10000, "How often to look for transactions past their timeout, and abort them."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = _int(
        3600000, "How often to look for expired transactional ids, and remove them."
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = _int(
        100, "How long Produce waits for a producer's last transaction to end, before it refuses.", low=0
    )
    add_partitions_to_txn_retry_backoff_ms: int = _int(
        20, "How often Produce checks meanwhile whether that transaction has ended.", low=1
    )
    producer_id_expiration_ms: int = _int(
        86400000, "How long a partition remembers the sequences of a producer that sends nothing."
    )
    producer_id_expiration_check_interval_ms: int = _int(
        600000, "How often to look for producers that have sent nothing for that long, and forget them."
    )
    socket_request_max_bytes: int = _int(
        104857600, "Largest request, in bytes; a client that announces a larger one is disconnected."
    )
    queued_max_request_bytes: int = _int(
        -1,
        "Memory for requests on their way and replies that nobody reads, in bytes; beyond it the largest "
        "requests are not read on. -1 is 128 MiB.",
        low=-1,
        high=LONG_MAX,
    )
    max_connections: int = _int(
        INT_MAX, "How many connections a broker serves; others wait until one of them is closed."
    )
    max_connections_per_ip: int = _int(
        INT_MAX, "How many connections a broker accepts from one address; others are closed.", low=0
    )
    max_connections_per_ip_overrides: str = _property(
        "", checked_per_ip, "The same for single addresses or host names, as HOST:COUNT,HOST:COUNT."
    )
    max_connection_creation_rate: int = _int(
        INT_MAX, "Connections that a broker accepts a second; others wait.", low=0
    )
    quota_window_num: int = _int(11, "Samples from which the rates of clients with quotas are taken.")
    quota_window_size_seconds: int = _int(1, "How long each of these samples is, in seconds.")
    controller_quota_window_num: int = _int(
        11,
        "As quota.window.num, for controller_mutation_rate: with the length of a sample it says how many "
        "partitions may be made at once.",
    )
    controller_quota_window_size_seconds: int = _int(
        1, "As quota.window.size.seconds, for controller_mutation_rate."
    )
    connections_max_idle_ms: int = _int(
        600000,
        "How long a connection may be idle before it is closed; -1 is for ever.",
        low=-1,
        high=LONG_MAX,
    )
    sasl_enabled_mechanisms: str = _property(
        "",
        str,
        "How clients may authenticate at listeners of SASL_PLAINTEXT and SASL_SSL: some of PLAIN, "
        "SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, comma-separated.",
        "GSSAPI",
    )
    sasl_jaas_config: Secret = _property(
        Secret(),
        Secret,
        "The users of PLAIN and the options of OAUTHBEARER, mostly set for one listener and mechanism: "
        "listener.name.LISTENER.plain.sasl.jaas.config.",
    )
    sasl_server_max_receive_size: int = _int(
        524288, "Largest request of a client that has not authenticated, in bytes."
    )
    connections_max_reauth_ms: int = _int(
        0,
        "How long a client may go on before it authenticates again; 0 is for ever (KIP-368).",
        low=0,
        high=LONG_MAX,
    )
    connection_failed_authentication_delay_ms: int = _int(
        100, "How long a client is not told that it failed to authenticate.", low=0
    )
    sasl_oauthbearer_jwks_endpoint_url: str = _property(
        "",
        str,
        "Keys that sign the tokens of OAUTHBEARER: file:///PATH of a JWKS file. Without it unsecured tokens "
        "are taken, which anybody can make.",
    )
    sasl_oauthbearer_expected_audience: str = _property(
        "", str, "Audiences for which a signed token may be; none if it must name none."
    )
    sasl_oauthbearer_expected_issuer: str = _property(
        "", str, "Who must have issued a signed token; anybody if empty."
    )
    sasl_oauthbearer_scope_claim_name: str = _property("scope", str, "The claim of a token's scope.")
    sasl_oauthbearer_sub_claim_name: str = _property("sub", str, "The claim of a token's user name.")
    sasl_oauthbearer_clock_skew_seconds: int = _int(
        30, "How far the clock of who issues tokens may be from this one.", low=0
    )
    upstream_bootstrap_servers: str = _property(
        "",
        checked_endpoints,
        "Addresses of a Kafka cluster to stand in front of, HOST:PORT, comma-separated: records stay there, "
        "groups are kshim's. Same as --upstream.",
        "none",
    )
    upstream_start_timeout_ms: int = _int(
        10000,
        "How long to try, at the start, until one of upstream.bootstrap.servers answers.",
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


@dataclass(frozen=True, slots=True)
class Property:
    """One row of `kshim config`."""

    name: str
    default: str
    kafka_default: str
    """Empty if Kafka's default is the same."""
    doc: str
    parse: Callable[[str], Any]
    is_secret: bool
    """True if its value must not be shown."""


def property_text(value: Any) -> str:
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
