"""All attacks, with one module for each family."""

from __future__ import annotations

from integration.hostile.attacks import (
    answers,
    connections,
    decoding,
    groups,
    handshakes,
    http,
    kept,
    logins,
    members,
    records,
    repeating,
    topics,
    turns,
    wide,
)

ATTACKS = [
    *records.ATTACKS,
    *repeating.ATTACKS,
    *groups.ATTACKS,
    *members.ATTACKS,
    *topics.ATTACKS,
    *decoding.ATTACKS,
    *connections.ATTACKS,
    *handshakes.ATTACKS,
    *http.ATTACKS,
    *logins.ATTACKS,
    *wide.ATTACKS,
    *kept.ATTACKS,
    *turns.ATTACKS,
    *answers.ATTACKS,
]
