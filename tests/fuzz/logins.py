"""Bytes of clients that authenticate: the tokens of each mechanism; and the JAAS text of a property."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable
from random import Random
from typing import Any

from kshim.authentication.mechanism import Answer, AuthenticationFailed, Unreadable
from kshim.authentication.oauthbearer import OAuthBearer
from kshim.authentication.plain import Plain
from kshim.authentication.scram import Keys, Scram
from kshim.authentication.scram_credential import ScramMechanism
from kshim.authentication.scram_keys import new_credential, salted_password
from kshim.authentication.tokens import ClaimRules, unsecured_claims
from kshim.configs.jaas import LoginModule, parse_jaas
from tests.fuzz.target import Target

NOW_MS = 1_700_000_000_000
SECRET = "a secret that no token has"
SHA_256 = ScramMechanism.SHA_256
SALTED = salted_password(SHA_256, SECRET, b"salt", 4096)
CREDENTIAL = new_credential(SHA_256, SALTED, b"salt", 4096)
CLAIMS = b'{"sub":"user","iat":1699999000,"exp":1700009000,"scope":["a"]}'
FIRST = b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"


def _plain(token: bytes) -> Answer:
    return Plain({"user": SECRET}).step(token, NOW_MS)


def _scram() -> Scram:
    return Scram(SHA_256, lambda name: Keys(CREDENTIAL, name == "user"), lambda: "nonce")


def _scram_first(token: bytes) -> Answer:
    return _scram().step(token, NOW_MS)


def _scram_final(token: bytes) -> Answer:
    scram = _scram()
    scram.step(FIRST, NOW_MS)
    return scram.step(token, NOW_MS)


def _oauthbearer(token: bytes) -> Answer:
    rules = ClaimRules(required_scope=("a",))
    return OAuthBearer(lambda text, now_ms: rules.login(unsecured_claims(text), now_ms)).step(token, NOW_MS)


def _claims(token: bytes) -> Answer:
    parts = (base64.urlsafe_b64encode(part).decode() for part in (b'{"alg":"none"}', token))
    return _oauthbearer(f"n,,\x01auth=Bearer {'.'.join(parts)}.\x01\x01".replace("=.", ".").encode())


READERS = (_plain, _scram_first, _scram_final, _oauthbearer, _claims)


def _read(data: bytes) -> Answer:
    return READERS[(data[0] if data else 0) % len(READERS)](data[1:])


def _check(data: bytes, found: Any) -> None:
    if found is None:
        return
    assert isinstance(found, Answer)
    found.token.decode()
    reader = READERS[data[0] % len(READERS)] if data else _plain
    if found.login is not None and reader in (_plain, _scram_final):
        assert SECRET.encode() in data or PROOF in data, "nobody else knows the password"


def _proof() -> bytes:
    """The right one, for the final message of the seeds."""
    challenge = _scram_first(FIRST).token
    client_key = hmac.digest(SALTED, b"Client Key", "sha256")
    said = b",".join((FIRST[3:], challenge, FINAL))
    signature = hmac.digest(CREDENTIAL.stored_key, said, "sha256")
    return base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))


FINAL = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawLnonce"
PROOF = _proof()


def _seeds(chance: Random) -> Iterable[bytes]:
    token = b".".join(base64.b64encode(part).rstrip(b"=") for part in (b'{"alg":"none"}', CLAIMS, b""))
    yield from (b"\0\0user\0" + SECRET.encode(), b"\0user\0user\0" + SECRET.encode(), b"\1" + FIRST)
    yield b"\1n,a=user,m=x,n=user,r=abc,tokenauth=false,x=y"
    yield b"\2" + FINAL + b",p=" + PROOF
    yield b"\3n,a=user,\x01auth=Bearer " + token + b"\x01host=x\x01\x01"
    yield b"\4" + CLAIMS


LOGINS = Target(
    "logins",
    _read,
    (AuthenticationFailed, Unreadable),
    _check,
    _seeds,
    words=(
        b"\0",
        b"\x01",
        b",",
        b"=",
        b"n,,",
        b"a=",
        b"r=",
        b",p=",
        b"=2C",
        b"auth=Bearer ",
        b".",
        b"1e999",
        b"null",
    ),
)


# ---- the property


def _read_jaas(data: bytes) -> LoginModule:
    return parse_jaas(data.decode("utf-8", "replace"))


def _check_jaas(data: bytes, found: LoginModule | None) -> None:
    if found is not None:
        assert set(found.users()) <= {key.removeprefix("user_") for key in found.options}


def _jaas_seeds(chance: Random) -> Iterable[bytes]:
    yield b'a.PlainLoginModule required user_alice="a\\"b" user_bob=\'c\' /* d */ x=y; // e'
    yield b"a.ScramLoginModule OPTIONAL;"


JAAS = Target(
    "jaas",
    _read_jaas,
    (ValueError,),
    _check_jaas,
    _jaas_seeds,
    words=(b'"', b"'", b"\\", b"\\777", b"//", b"/*", b"*/", b"/", b";", b"=", b" required ", b"-1.5", b"\n"),
)
