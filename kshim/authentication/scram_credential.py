"""What is kept of a user's password for SCRAM (RFC 5802): keys from which the password cannot be found.

The server never has the password: a client that sets one sends the salted password, of which only the two
keys are kept.
"""

from __future__ import annotations

import hmac
import string
from dataclasses import dataclass
from enum import Enum
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from typing import Final

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's limits."""
_DIGITS: Final = string.digits + string.ascii_lowercase
_SALT_BITS: Final = 130


class ScramMechanism(Enum):
    """The value is the mechanism's name; `number` stands for it in requests (KIP-554)."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """As hashlib has it."""
        return self.name.replace("_", "").lower()

    @property
    def number(self) -> int:
        return list(ScramMechanism).index(self) + 1

    @classmethod
    def numbered(cls, number: int) -> ScramMechanism | None:
        """The mechanism of that number; None if there is none."""
        return next((each for each in cls if each.number == number), None)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Of one user and one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential()"


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """`Hi` of RFC 5802: PBKDF2. Takes some milliseconds."""
    return pbkdf2_hmac(mechanism.hash_name, password.encode("utf-8", "surrogatepass"), salt, iterations)


def new_credential(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What is to be kept of a salted password."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = _hash(mechanism, client_key)
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


def new_salt() -> bytes:
    """A salt as Kafka's tools make it: some 26 digits and letters."""
    import secrets

    return base36(secrets.randbits(_SALT_BITS))


def invented_credential(
    mechanism: ScramMechanism, secret: bytes, user: str, iterations: int
) -> ScramCredential:
    """What an unknown user seems to have: always the same, and no password fits to it."""
    user_bytes = f"{mechanism.value} {user}".encode("utf-8", "surrogatepass")
    seed = hmac.digest(secret, user_bytes, "sha512")
    salt = base36(int.from_bytes(seed[:32]) >> (256 - _SALT_BITS))
    key_bytes = len(_hash(mechanism, b""))
    return ScramCredential(salt, seed[:key_bytes], seed[:key_bytes], iterations)


def base36(number: int) -> bytes:
    """A number in digits and small letters."""
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode() or b"0"


def proves(mechanism: ScramMechanism, credential: ScramCredential, said: bytes, proof: bytes) -> bool:
    """Whether a client's proof shows that it knows the password; `said` is what both have said so far.

    The proof has as many bytes as the mechanism's hash.
    """
    signature = hmac.digest(credential.stored_key, said, mechanism.hash_name)
    client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
    return hmac.compare_digest(_hash(mechanism, client_key), credential.stored_key)


def client_proof(mechanism: ScramMechanism, salted: bytes, said: bytes) -> bytes:
    """What `proves` takes, of a client that has the salted password."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(_hash(mechanism, client_key), said, name)
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


def server_signature(mechanism: ScramMechanism, credential: ScramCredential, said: bytes) -> bytes:
    """By which the client knows that the server has its keys."""
    return hmac.digest(credential.server_key, said, mechanism.hash_name)


def _hash(mechanism: ScramMechanism, data: bytes) -> bytes:
    return new_hash(mechanism.hash_name, data).digest()
