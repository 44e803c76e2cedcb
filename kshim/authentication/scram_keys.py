"""The computations of SCRAM (RFC 5802): salted passwords, credentials, proofs and signatures."""

from __future__ import annotations

import hmac
import secrets
import string
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from typing import Final

from kshim.authentication.scram_credential import ScramCredential, ScramMechanism

_DIGITS: Final = string.digits + string.ascii_lowercase
_SALT_BITS: Final = 130


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """`Hi` of RFC 5802: PBKDF2. Takes some milliseconds."""
    return pbkdf2_hmac(mechanism.hash_name, password.encode("utf-8", "surrogatepass"), salt, iterations)


def new_credential(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Make the credential from a salted password."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = _hash(mechanism, client_key)
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


def new_salt() -> bytes:
    """A random salt like those of Kafka's tools: some 26 digits and letters."""
    return base36(secrets.randbits(_SALT_BITS))


def invented_credential(
    mechanism: ScramMechanism, secret: bytes, user: str, iterations: int
) -> ScramCredential:
    """A credential for an unknown user. It is the same each time, and no password fits it."""
    user_bytes = f"{mechanism.value} {user}".encode("utf-8", "surrogatepass")
    seed = hmac.digest(secret, user_bytes, "sha512")
    salt = base36(int.from_bytes(seed[:32]) >> (256 - _SALT_BITS))
    key_bytes = len(_hash(mechanism, b""))
    return ScramCredential(salt, seed[:key_bytes], seed[:key_bytes], iterations)


def base36(number: int) -> bytes:
    """A number in base 36: digits and small letters."""
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode() or b"0"


def proves(mechanism: ScramMechanism, credential: ScramCredential, said: bytes, proof: bytes) -> bool:
    """True if a client's proof shows that it knows the password.

    said: the messages of client and server so far. proof: as many bytes as the mechanism's hash.
    """
    signature = hmac.digest(credential.stored_key, said, mechanism.hash_name)
    client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
    return hmac.compare_digest(_hash(mechanism, client_key), credential.stored_key)


def client_proof(mechanism: ScramMechanism, salted: bytes, said: bytes) -> bytes:
    """The proof of a client that knows the salted password, as `proves` checks it."""
    name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(_hash(mechanism, client_key), said, name)
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


def server_signature(mechanism: ScramMechanism, credential: ScramCredential, said: bytes) -> bytes:
    """The signature that proves to the client that the server has its keys."""
    return hmac.digest(credential.server_key, said, mechanism.hash_name)


def _hash(mechanism: ScramMechanism, data: bytes) -> bytes:
    return new_hash(mechanism.hash_name, data).digest()
