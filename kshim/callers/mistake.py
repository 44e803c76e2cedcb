"""Mistakes in the settings of clients, and the log's line for each.

docs/troubleshooting.md explains each line; a test compares the page with this table.
"""

from __future__ import annotations

from enum import Enum

_KAFKA_PORT = "but this port is a Kafka listener: correct the address in the client"
_NO_SASL = "but this listener has no SASL: set security.protocol=PLAINTEXT in the client"
_CLASSIC = "set group.protocol=classic in the client"
_VERSIONS = "but only versions {first} to {last} are served"


class Mistake(Enum):
    """The value is the line after the client's name, and ends with what to change."""

    TLS = "it speaks TLS, but this listener is plain: set security.protocol=PLAINTEXT in the client"
    NO_TLS = (
        "it speaks without TLS, but this listener has TLS: set security.protocol={protocol} in the client"
    )
    NO_HANDSHAKE = "it did not end its TLS handshake within {seconds:.0f} s"
    NOT_TRUSTED = (
        "it refuses this listener's certificate ({why}): make it trust the CA (ssl.truststore.location), and "
        "connect by a name that the certificate has"
    )
    NO_CERTIFICATE = (
        "it has no certificate, but ssl.client.auth=required: give the client one (ssl.keystore.location)"
    )
    CERTIFICATE = "its certificate is refused ({why}): renew it, or add its CA to this listener's trust store"
    TLS_VERSION = "it offers no version of TLS that ssl.enabled.protocols has: upgrade the client"
    CIPHER_SUITE = "it offers no cipher suite that this listener has: correct ssl.cipher.suites"
    NO_RULE = "its certificate is of {name!r}, for which ssl.principal.mapping.rules has no rule: add DEFAULT"
    TLS_FAILED = "its TLS connection failed: {why}"
    HTTP = f"it speaks HTTP, {_KAFKA_PORT}"
    PROXY = "it sends a PROXY protocol header: switch that off in the proxy before this listener"
    REDIS = f"it speaks Redis's protocol, {_KAFKA_PORT}"
    ZOOKEEPER = f"it sends a command for ZooKeeper, {_KAFKA_PORT}"
    TEXT = f"it sends the text {{text!r}}, {_KAFKA_PORT}"
    SASL = (
        "it asks for SASL {mechanism!r}, but this listener has no SASL: set security.protocol={protocol} in "
        "the client"
    )
    GSSAPI = f"it sends a token of SASL GSSAPI, {_NO_SASL}"
    CREDENTIALS = (
        "failed to authenticate with {mechanism}{as_whom} at listener {listener}: {why}: correct its "
        "credentials, or those that this server has"
    )
    MECHANISM = (
        "it asks for SASL {mechanism!r}, but listener {listener} has {enabled}: set sasl.mechanism in the "
        "client"
    )
    NO_LOGIN = (
        "it sends {api} without authenticating at listener {listener}: set security.protocol={protocol} "
        "and sasl.mechanism in the client"
    )
    NO_TOKEN = "it sends {api} before it has authenticated at listener {listener}: await each answer first"
    SESSION_EXPIRED = (
        "its login at listener {listener} has ended, and it did not authenticate again: use a client that "
        "does (KIP-368), or raise connections.max.reauth.ms"
    )
    CONSUMER_PROTOCOL = f"group {{group}}: group.protocol=consumer (KIP-848) is not served: {_CLASSIC}"
    STREAMS_PROTOCOL = f"group {{group}}: group.protocol=streams (KIP-1071) is not served: {_CLASSIC}"
    SHARE_GROUP = "group {group}: share groups (KIP-932) are not served: use a consumer of an ordinary group"
    OLD_VERSION = (
        f"it asks for {{api}}, {_VERSIONS}: upgrade the client to one for Kafka 2.1 or later (KIP-896)"
    )
    NEW_VERSION = f"it asks for {{api}}, {_VERSIONS}: the client should ask which it may use (ApiVersions)"
    NEVER_CAME = (
        "it asked {times} times in {seconds:.0f} s where the brokers are, and never came to {advertised}: "
        "if clients cannot reach that address, correct advertised.listeners (--advertise)"
    )

    def line(self, **details: object) -> str:
        """The line, with what the client sent."""
        return self.value.format(**details)
