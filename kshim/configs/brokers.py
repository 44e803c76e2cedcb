"""The broker properties of Apache Kafka 4.4, one row each: type, default, and where they may be changed.

Most have no effect in kshim. They are known so that an existing server.properties loads, and so that tools
that ask for a broker's configs, or change one, get an answer. To save time at the start, this module is
imported only when it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from kshim.configs import java
from kshim.configs.definition import (
    Check,
    ConfigType,
    Definition,
    any_value,
    between,
    gzip_level,
    invalid,
    no_empty_item,
    one_of,
)
from kshim.configs.java import LONG_MAX
from kshim.configs.per_ip import per_ip

# Prefixes of the properties of plug-ins and of single listeners.
PREFIXES = ("listener.name.", "sasl.", "ssl.", "remote.log.", "zookeeper.")


class Update(Enum):
    """The resources at which a config may be changed while the broker runs."""

    NEVER = ""
    ANYWHERE = "dynamic"
    """One broker, or all brokers."""
    BROKER = "broker"
    """One broker only."""
    LISTENER = "listener"
    """One listener of a broker in Kafka; in kshim it cannot be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig(Definition):
    """One row of the table."""

    update: Update
    """The resources at which it may be changed while the broker runs (KIP-226)."""

    def fault(self, text: str) -> str:
        """The fault in `text` as a value that is set at run time; "" if there is none."""
        items = java.items(java.trim(text)) if self.type is ConfigType.LIST else []
        if len(set(items)) < len(items) and not self.repeats:
            return f"Configuration '{self.name}' values must not be duplicated."
        return Definition.fault(self, text)

    @property
    def dynamic(self) -> bool:
        return self.update in (Update.ANYWHERE, Update.BROKER)


# name TYPE default [update [legal values]]: "-" is null; legal values are LOW..HIGH, LOW.., one|of|these, or
# a key of _CHECKS. Read-only properties have none here. A line that begins with a space continues the line
# before it.
#
# Kafka can also change its listeners and their security while it runs. In kshim these are read-only.
_ROWS = """\
add.partitions.to.txn.retry.backoff.max.ms INT 100
add.partitions.to.txn.retry.backoff.ms INT 20
advertised.listeners LIST -
alter.config.policy.class.name CLASS -
alter.log.dirs.replication.quota.window.num INT 11
alter.log.dirs.replication.quota.window.size.seconds INT 1
authorizer.class.name STRING ""
auto.create.topics.enable BOOLEAN true
auto.leader.rebalance.enable BOOLEAN true
background.threads INT 10 dynamic 1..
broker.heartbeat.interval.ms INT 2000
broker.id INT -1
broker.rack STRING -
broker.session.timeout.ms INT 9000
client.quota.callback.class CLASS -
compression.gzip.level INT -1 dynamic gzip
compression.lz4.level INT 9 dynamic 1..17
compression.type STRING producer dynamic uncompressed|zstd|lz4|snappy|gzip|producer
compression.zstd.level INT 3 dynamic -131072..22
config.providers LIST "" dynamic
connection.failed.authentication.delay.ms INT 100
connections.max.idle.ms LONG 600000
connections.max.reauth.ms LONG 0
controlled.shutdown.enable BOOLEAN true
controller.listener.names LIST -
controller.quorum.append.linger.ms INT 25
controller.quorum.auto.join.enable BOOLEAN false
controller.quorum.bootstrap.servers LIST ""
controller.quorum.election.backoff.max.ms INT 1000
controller.quorum.election.timeout.ms INT 1000
controller.quorum.fetch.max.bytes INT 1048576
controller.quorum.fetch.snapshot.max.bytes INT 1048576
controller.quorum.fetch.timeout.ms INT 2000
controller.quorum.request.timeout.ms INT 2000
controller.quorum.retry.backoff.ms INT 20
controller.quorum.voters LIST ""
controller.quota.window.num INT 11
controller.quota.window.size.seconds INT 1
controller.socket.timeout.ms INT 30000
cordoned.log.dirs LIST "" broker
create.topic.policy.class.name CLASS -
default.replication.factor INT 1
delegation.token.expiry.check.interval.ms LONG 3600000
delegation.token.expiry.time.ms LONG 86400000
delegation.token.max.lifetime.ms LONG 604800000
delegation.token.secret.key PASSWORD -
delete.records.purgatory.purge.interval.requests INT 1
delete.topic.enable BOOLEAN true
early.start.listeners LIST -
errors.deadletterqueue.auto.create.topics.enable BOOLEAN false dynamic
errors.deadletterqueue.topic.name.prefix STRING dlq. dynamic
fetch.max.bytes INT 57671680
fetch.purgatory.purge.interval.requests INT 1000
follower.fetch.last.tiered.offset.enable BOOLEAN false dynamic
group.consumer.assignment.interval.ms INT 1000 dynamic 0..
group.consumer.assignors LIST uniform,range
group.consumer.heartbeat.interval.ms INT 5000
group.consumer.max.assignment.interval.ms INT 15000
group.consumer.max.heartbeat.interval.ms INT 15000
group.consumer.max.session.timeout.ms INT 60000
group.consumer.max.size INT 2147483647
group.consumer.migration.policy STRING bidirectional
group.consumer.min.assignment.interval.ms INT 0
group.consumer.min.heartbeat.interval.ms INT 5000
group.consumer.min.session.timeout.ms INT 45000
group.consumer.session.timeout.ms INT 45000
group.coordinator.append.linger.ms INT -1
group.coordinator.background.threads INT 2
group.coordinator.cached.buffer.max.bytes INT 1048588 dynamic 524288..
group.coordinator.rebalance.protocols LIST classic,consumer,streams
group.coordinator.threads INT 4
group.initial.rebalance.delay.ms INT 3000
group.max.session.timeout.ms INT 1800000
group.max.size INT 2147483647
group.min.session.timeout.ms INT 6000
group.share.assignment.interval.ms INT 1000 dynamic 0..
group.share.assignors LIST simple
group.share.delivery.count.limit INT 5
group.share.heartbeat.interval.ms INT 5000
group.share.max.assignment.interval.ms INT 15000
group.share.max.delivery.count.limit INT 10
group.share.max.heartbeat.interval.ms INT 15000
group.share.max.partition.max.record.locks INT 4000
group.share.max.record.lock.duration.ms INT 60000
group.share.max.session.timeout.ms INT 60000
group.share.max.share.sessions INT 2000
group.share.max.size INT 200
group.share.min.assignment.interval.ms INT 0
group.share.min.delivery.count.limit INT 2
group.share.min.heartbeat.interval.ms INT 5000
group.share.min.partition.max.record.locks INT 100
group.share.min.record.lock.duration.ms INT 15000
group.share.min.session.timeout.ms INT 45000
group.share.partition.max.record.locks INT 2000
group.share.record.lock.duration.ms INT 30000
group.share.session.timeout.ms INT 45000
group.streams.assignment.interval.ms INT 1000 dynamic 0..
group.streams.assignors LIST sticky
group.streams.heartbeat.interval.ms INT 5000
group.streams.initial.rebalance.delay.ms INT 3000
group.streams.max.assignment.interval.ms INT 15000
group.streams.max.heartbeat.interval.ms INT 15000
group.streams.max.session.timeout.ms INT 60000
group.streams.max.size INT 2147483647
group.streams.max.standby.replicas INT 2
group.streams.min.assignment.interval.ms INT 0
group.streams.min.heartbeat.interval.ms INT 5000
group.streams.min.session.timeout.ms INT 45000
group.streams.num.standby.replicas INT 0
group.streams.rack.aware.assignment.tags LIST ""
group.streams.session.timeout.ms INT 45000
group.streams.topology.description.plugin.class CLASS -
initial.broker.registration.timeout.ms INT 60000
inter.broker.listener.name STRING -
kafka.metrics.polling.interval.secs INT 10
kafka.metrics.reporters LIST ""
leader.imbalance.check.interval.seconds LONG 300
listener.security.protocol.map STRING
  SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listeners LIST PLAINTEXT://:9092
log.cleaner.backoff.ms LONG 15000 dynamic 0..
log.cleaner.dedupe.buffer.size LONG 134217728 dynamic 1048576..
log.cleaner.delete.retention.ms LONG 86400000 dynamic 0..
log.cleaner.enable BOOLEAN true
log.cleaner.io.buffer.load.factor DOUBLE 0.9 dynamic
log.cleaner.io.buffer.size INT 524288 dynamic 0..
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308 dynamic
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 dynamic 1..
log.cleaner.min.cleanable.ratio DOUBLE 0.5 dynamic 0..1
log.cleaner.min.compaction.lag.ms LONG 0 dynamic 0..
log.cleaner.threads INT 1 dynamic 0..
log.cleanup.policy LIST delete dynamic compact|delete
log.dir LIST /tmp/kafka-logs
log.dir.failure.timeout.ms LONG 30000
log.dirs LIST -
log.flush.interval.messages LONG 9223372036854775807 dynamic 1..
log.flush.interval.ms LONG - dynamic
log.flush.offset.checkpoint.interval.ms INT 60000
log.flush.scheduler.interval.ms LONG 9223372036854775807
log.flush.start.offset.checkpoint.interval.ms INT 60000
log.index.interval.bytes INT 4096 dynamic 0..
log.index.size.max.bytes INT 10485760 dynamic 4..
log.local.retention.bytes LONG -2 dynamic -2..
log.local.retention.ms LONG -2 dynamic -2..
log.message.timestamp.after.max.ms LONG 3600000 dynamic 0..
log.message.timestamp.before.max.ms LONG 9223372036854775807 dynamic 0..
log.message.timestamp.type STRING CreateTime dynamic CreateTime|LogAppendTime
log.preallocate BOOLEAN false dynamic
log.remote.copy.lag.bytes LONG -1 dynamic -1..
log.remote.copy.lag.ms LONG 0 dynamic -1..
log.retention.bytes LONG -1 dynamic
log.retention.check.interval.ms LONG 300000
log.retention.hours INT 168
log.retention.minutes INT -
log.retention.ms LONG - dynamic retention
log.roll.hours INT 168
log.roll.jitter.hours INT 0
log.roll.jitter.ms LONG - dynamic 0..
log.roll.ms LONG - dynamic 1..
log.segment.bytes INT 1073741824 dynamic 1048576..
log.segment.delete.delay.ms LONG 60000 dynamic 0..
max.connection.creation.rate INT 2147483647 dynamic connections
max.connections INT 2147483647 dynamic connections
max.connections.per.ip INT 2147483647 dynamic 0..
max.connections.per.ip.overrides STRING "" dynamic per_ip
max.decompressed.message.bytes INT 2147483639 dynamic 1..2147483639
max.incremental.fetch.session.cache.slots INT 1000
max.request.partition.size.limit INT 2000
message.max.bytes INT 1048588 dynamic 0..
metadata.log.dir STRING -
metadata.log.max.record.bytes.between.snapshots LONG 20971520
metadata.log.max.snapshot.interval.ms LONG 3600000
metadata.log.segment.bytes INT 1073741824
metadata.log.segment.ms LONG 604800000
metadata.max.idle.interval.ms INT 500
metadata.max.retention.bytes LONG 104857600
metadata.max.retention.ms LONG 604800000
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter dynamic
metrics.num.samples INT 2
metrics.recording.level STRING INFO
metrics.sample.window.ms LONG 30000
min.insync.replicas INT 1 dynamic 1..
node.id INT -
num.io.threads INT 8 dynamic 1..
num.network.threads INT 3 dynamic 1..
num.partitions INT 1
num.recovery.threads.per.data.dir INT 2 dynamic 1..
num.replica.alter.log.dirs.threads INT -
num.replica.fetchers INT 1 dynamic 1..
offset.metadata.max.bytes INT 4096
offsets.commit.timeout.ms INT 5000
offsets.load.buffer.size INT 5242880
offsets.retention.check.interval.ms LONG 600000
offsets.retention.minutes INT 10080
offsets.topic.compression.codec INT 0
offsets.topic.num.partitions INT 50
offsets.topic.replication.factor SHORT 3
offsets.topic.segment.bytes INT 104857600
principal.builder.class CLASS
  org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder broker
process.roles LIST -
producer.id.expiration.ms INT 86400000 dynamic 1..
producer.purgatory.purge.interval.requests INT 1000
queued.max.request.bytes LONG -1
queued.max.requests INT 500
quota.window.num INT 11
quota.window.size.seconds INT 1
remote.fetch.max.wait.ms INT 500 dynamic 1..
remote.list.offsets.request.timeout.ms LONG 30000 dynamic 1..
remote.log.index.file.cache.total.size.bytes LONG 1073741824 dynamic 1..
remote.log.manager.copier.thread.pool.size INT 10 dynamic 1..
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 dynamic 1..
remote.log.manager.copy.quota.window.num INT 11
remote.log.manager.copy.quota.window.size.seconds INT 1
remote.log.manager.expiration.thread.pool.size INT 10 dynamic 1..
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 dynamic 1..
remote.log.manager.fetch.quota.window.num INT 11
remote.log.manager.fetch.quota.window.size.seconds INT 1
remote.log.manager.follower.thread.pool.size INT 2 dynamic 1..
remote.log.manager.task.interval.ms LONG 30000
remote.log.manager.thread.pool.size INT 2
remote.log.metadata.custom.metadata.max.bytes INT 128
remote.log.metadata.manager.class.name STRING
  org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path STRING -
remote.log.metadata.manager.impl.prefix STRING rlmm.config.
remote.log.metadata.manager.listener.name STRING -
remote.log.reader.max.pending.tasks INT 100
remote.log.reader.threads INT 10 dynamic 1..
remote.log.storage.manager.class.name STRING -
remote.log.storage.manager.class.path STRING -
remote.log.storage.manager.impl.prefix STRING rsm.config.
remote.log.storage.system.enable BOOLEAN false
replica.fetch.backoff.ms INT 1000
replica.fetch.max.bytes INT 1048576
replica.fetch.min.bytes INT 1
replica.fetch.response.max.bytes INT 10485760
replica.fetch.wait.max.ms INT 500
replica.high.watermark.checkpoint.interval.ms LONG 5000
replica.lag.time.max.ms LONG 30000
replica.selector.class STRING -
replica.socket.receive.buffer.bytes INT 65536
replica.socket.timeout.ms INT 30000
replication.quota.window.num INT 11
replication.quota.window.size.seconds INT 1
request.timeout.ms INT 30000
sasl.client.callback.handler.class CLASS -
sasl.enabled.mechanisms LIST GSSAPI
sasl.jaas.config PASSWORD -
sasl.kerberos.kinit.cmd STRING /usr/bin/kinit broker
sasl.kerberos.min.time.before.relogin LONG 60000 broker
sasl.kerberos.principal.to.local.rules LIST DEFAULT broker
sasl.kerberos.service.name STRING - broker
sasl.kerberos.ticket.renew.jitter DOUBLE 0.05 broker
sasl.kerberos.ticket.renew.window.factor DOUBLE 0.8 broker
sasl.login.callback.handler.class CLASS -
sasl.login.class CLASS -
sasl.login.connect.timeout.ms INT -
sasl.login.read.timeout.ms INT -
sasl.login.refresh.buffer.seconds SHORT 300 broker
sasl.login.refresh.min.period.seconds SHORT 60 broker
sasl.login.refresh.window.factor DOUBLE 0.8 broker
sasl.login.refresh.window.jitter DOUBLE 0.05 broker
sasl.login.retry.backoff.max.ms LONG 10000
sasl.login.retry.backoff.ms LONG 100
sasl.mechanism.controller.protocol STRING GSSAPI
sasl.mechanism.inter.broker.protocol STRING GSSAPI broker
sasl.oauthbearer.allow.unverified.audience BOOLEAN false
sasl.oauthbearer.allow.unverified.issuer BOOLEAN false
sasl.oauthbearer.assertion.algorithm STRING RS256
sasl.oauthbearer.assertion.claim.aud STRING -
sasl.oauthbearer.assertion.claim.exp.seconds INT 300
sasl.oauthbearer.assertion.claim.iss STRING -
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN false
sasl.oauthbearer.assertion.claim.nbf.seconds INT 60
sasl.oauthbearer.assertion.claim.sub STRING -
sasl.oauthbearer.assertion.file STRING -
sasl.oauthbearer.assertion.private.key.file STRING -
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD -
sasl.oauthbearer.assertion.template.file STRING -
sasl.oauthbearer.client.credentials.client.id STRING -
sasl.oauthbearer.client.credentials.client.secret PASSWORD -
sasl.oauthbearer.clock.skew.seconds INT 30
sasl.oauthbearer.expected.audience LIST ""
sasl.oauthbearer.expected.issuer STRING -
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100
sasl.oauthbearer.jwks.endpoint.url STRING -
sasl.oauthbearer.jwt.retriever.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class CLASS org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope STRING -
sasl.oauthbearer.scope.claim.name STRING scope
sasl.oauthbearer.sub.claim.name STRING sub
sasl.oauthbearer.token.endpoint.url STRING -
sasl.server.callback.handler.class CLASS -
sasl.server.max.receive.size INT 524288
security.inter.broker.protocol STRING PLAINTEXT
security.providers STRING -
share.coordinator.append.linger.ms INT -1
share.coordinator.cached.buffer.max.bytes INT 1048588 dynamic 524288..
share.coordinator.load.buffer.size INT 5242880
share.coordinator.snapshot.update.records.per.snapshot INT 500
share.coordinator.state.topic.compression.codec INT 0
share.coordinator.state.topic.min.isr SHORT 2
share.coordinator.state.topic.num.partitions INT 50
share.coordinator.state.topic.replication.factor SHORT 3
share.coordinator.state.topic.segment.bytes INT 104857600
share.coordinator.threads INT 1
share.coordinator.write.timeout.ms INT 5000
share.fetch.purgatory.purge.interval.requests INT 1000
socket.connection.setup.timeout.max.ms LONG 30000
socket.connection.setup.timeout.ms LONG 10000
socket.listen.backlog.size INT 50
socket.receive.buffer.bytes INT 102400
socket.request.max.bytes INT 104857600
socket.send.buffer.bytes INT 102400
ssl.allow.dn.changes BOOLEAN false
ssl.allow.san.changes BOOLEAN false
ssl.cipher.suites LIST ""
ssl.client.auth STRING none
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING https broker
ssl.engine.factory.class CLASS - broker
ssl.key.password PASSWORD - listener
ssl.keymanager.algorithm STRING SunX509 broker
ssl.keystore.certificate.chain PASSWORD - listener
ssl.keystore.key PASSWORD - listener
ssl.keystore.location STRING - listener
ssl.keystore.password PASSWORD - listener
ssl.keystore.type STRING JKS listener
ssl.principal.mapping.rules STRING DEFAULT
ssl.protocol STRING TLSv1.3 broker
ssl.provider STRING - broker
ssl.secure.random.implementation STRING - broker
ssl.trustmanager.algorithm STRING PKIX broker
ssl.truststore.certificates PASSWORD - listener
ssl.truststore.location STRING - listener
ssl.truststore.password PASSWORD - listener
ssl.truststore.type STRING JKS listener
telemetry.max.bytes INT 1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000
transaction.max.timeout.ms INT 900000
transaction.partition.verification.enable BOOLEAN true dynamic
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000
transaction.state.log.load.buffer.size INT 5242880
transaction.state.log.min.isr INT 2
transaction.state.log.num.partitions INT 50
transaction.state.log.replication.factor SHORT 3
transaction.state.log.segment.bytes INT 104857600
transaction.two.phase.commit.enable BOOLEAN false
transactional.id.expiration.ms INT 604800000
unclean.leader.election.enable BOOLEAN false dynamic
"""

# Properties that can be set only at run time.
_THROTTLES = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

# Properties that set the same value, the strongest first.
_SYNONYMS = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
SYNONYMS = {name: names for names in _SYNONYMS for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


def _retention(name: str, value: object) -> str:
    return invalid(name, value, "Value must be -1, which is unlimited, or at least 1") if value == 0 else ""


def _connections(name: str, value: object) -> str:
    if value:
        return between(0)(name, value)
    fault = f"org.apache.kafka.common.config.ConfigException: Invalid {name} {value}"
    return f"Invalid value {fault} for configuration Invalid dynamic configuration"


def _per_ip(name: str, value: object) -> str:
    assert isinstance(value, str)
    try:
        per_ip(name, value)
    except ValueError as error:
        return str(error)
    return ""


def _kafkas_class(name: str, value: object) -> str:
    """Refuse every class but the default: kshim loads none."""
    if value == BROKER_CONFIGS[name].default:
        return ""
    return invalid(name, value, f"Class {value} could not be found.")


_CHECKS: dict[str, Check] = {
    "": any_value,
    "connections": _connections,
    "gzip": gzip_level,
    "per_ip": _per_ip,
    "retention": _retention,
}


_ANY_LISTS = ("config.providers", "controller.quorum.bootstrap.servers")
"""Lists whose items may be empty, or repeated."""


def _check(type_: ConfigType, name: str, legal: str) -> Check:
    if type_ is ConfigType.LIST and not legal and name not in _ANY_LISTS:
        return no_empty_item
    if legal in _CHECKS:
        return _CHECKS[legal]
    low, dots, high = legal.partition("..")
    if dots:
        return between(int(low), int(high) if high else None)
    return one_of(*legal.split("|"))


def _row(line: str) -> BrokerConfig:
    name, type_, default, update, legal = (*line.split(), "", "")[:5]
    return BrokerConfig(
        name=name,
        type=ConfigType[type_],
        default=None if default == "-" else default.strip('"'),
        check=_check(ConfigType[type_], name, legal),
        update=Update(update),
        repeats=name in _ANY_LISTS,
    )


BROKER_CONFIGS = {row.name: row for row in map(_row, _ROWS.replace("\n ", " ").splitlines())}
DYNAMIC_CONFIGS = {
    row.name: replace(row, check=_kafkas_class) if row.type is ConfigType.CLASS else row
    for row in BROKER_CONFIGS.values()
    if row.dynamic
} | {name: _row(f"{name} LONG {LONG_MAX} dynamic 0..") for name in _THROTTLES}


def is_kafka_property(name: str) -> bool:
    """True if Kafka knows this name or hands it to a plug-in."""
    return name in BROKER_CONFIGS or name.startswith(PREFIXES)
