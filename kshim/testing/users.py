"""Users of a test's server: their passwords, and the second listener, where they authenticate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kshim.authentication.scram_credential import MIN_ITERATIONS, ScramMechanism
from kshim.authentication.scram_keys import new_salt, salted_password

LISTENER = "SASL_PLAINTEXT"
MECHANISMS = ("PLAIN", *(each.value for each in ScramMechanism))
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def with_users(users: Mapping[str, str]) -> dict[str, str]:
    """The properties of the listener for users. users: passwords by name."""
    options = " ".join(f'"user_{_quoted(name)}"="{_quoted(each)}"' for name, each in users.items())
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f"{_MODULE} {options};",
    }


def put_user(name: str, password: str) -> Iterator[tuple[str, str, str, int, str, str]]:
    """The commands that give a user a password for SCRAM."""
    for mechanism in ScramMechanism:
        salt = new_salt()
        salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
        yield "put-user", name, mechanism.value, MIN_ITERATIONS, salt.hex(), salted.hex()


def _quoted(text: str) -> str:
    return text.translate(_ESCAPED)
