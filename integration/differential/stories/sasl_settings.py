"""The settings of servers whose only listener has SASL: it keeps the name PLAINTEXT, as both have it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from integration.differential.stories.sasl_talk import FAILURE_DELAY_MS, PASSWORD, USER
from integration.differential.stories.telling import Servers, both_servers

LISTENER = "listener.name.plaintext."
MODULES = "org.apache.kafka.common.security."
OWN_LOGIN = f'username="{USER}" password="{PASSWORD}"'
"""With which Apache Kafka's brokers log in at each other."""
PLAIN = f'{MODULES}plain.PlainLoginModule required {OWN_LOGIN} user_{USER}="{PASSWORD}";'
SCRAM = f"{MODULES}scram.ScramLoginModule required;"
OAUTHBEARER = f'{MODULES}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";'
SETTINGS: Mapping[str, str] = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    f"{LISTENER}plain.sasl.jaas.config": PLAIN,
    f"{LISTENER}scram-sha-256.sasl.jaas.config": SCRAM,
    f"{LISTENER}scram-sha-512.sasl.jaas.config": SCRAM,
    f"{LISTENER}oauthbearer.sasl.jaas.config": OAUTHBEARER,
    f"{LISTENER}scram-sha-512.connections.max.reauth.ms": "5000",
    "connection.failed.authentication.delay.ms": str(FAILURE_DELAY_MS),
    "sasl.server.max.receive.size": "2000",
}


def both_with_sasl(
    directory: Path, settings: Mapping[str, str] = SETTINGS
) -> AbstractContextManager[Servers]:
    """Apache Kafka and kshim with SASL, until the block ends."""
    return both_servers(directory, settings, ["PLAINTEXT"])
