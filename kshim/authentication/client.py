"""The client's side of SASL's mechanisms: the tokens with which kshim authenticates at another server.

exchange = Plain("alice", password)
token = exchange.first()
while token is not None: token = exchange.answer(what the server answers to the token)
"""

from __future__ import annotations

import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Protocol

from kshim.authentication.scram_credential import ScramMechanism
from kshim.authentication.scram_keys import client_proof, new_credential, salted_password, server_signature
from kshim.configs.values import Secret

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 65_536
"""Most iterations that kshim computes for a server: some 40 ms. Kafka's credentials have at most 16,384."""
_CHALLENGE = re.compile(
    r"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?"
)
_NO_CHANNEL: Final = b64encode(b"n,,").decode()


class NotOurServer(Exception):
    """The server's answer shows that it does not have our credentials. str() says how, without secrets."""


class Exchange(Protocol):
    """One login. Its methods raise NotOurServer for an answer that the server should not give."""

    def first(self) -> bytes:
        """The first token."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """The next token; None at the end of the login."""
        ...


class Plain:
    """PLAIN (RFC 4616): a single token."""

    def __init__(self, username: str, password: Secret) -> None:
        self._token = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> None:
        return None


class OAuthBearer:
    """OAUTHBEARER (RFC 7628): the bearer token of an authorization server. A refusal is a challenge, which
    the client must answer before the server ends the login with an error.
    """

    def __init__(self, token: Secret, extensions: Mapping[str, str]) -> None:
        pairs = "".join(f"{name}={text}\x01" for name, text in extensions.items())
        self._token = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> bytes | None:
        return b"\x01" if challenge else None


class Scram:
    """SCRAM (RFC 5802): the client proves that it knows the password, and the server that it has its keys."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: Secret,
        *,
        is_delegation_token: bool = False,
        new_nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = new_nonce()
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}" + (",tokenauth=true" if is_delegation_token else "")
        self._signature: bytes | None = None
        """The expected signature of the server; None before the server's challenge."""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "replace")
        if self._signature is None:
            return self._prove(text)
        self._check(text, self._signature)
        return None

    def _prove(self, challenge: str) -> bytes:
        found = _CHALLENGE.fullmatch(challenge)
        if found is None or not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise NotOurServer("its challenge is none of SCRAM")
        iterations = int(found["iterations"])
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise NotOurServer(
                f"it asks for {iterations} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        try:
            salt = b64decode(found["salt"], validate=True)
        except ValueError:
            raise NotOurServer("its challenge is none of SCRAM") from None
        salted = _salted(self._mechanism, self._password, salt, iterations)
        without_proof = f"c={_NO_CHANNEL},r={found['nonce']}"
        said = f"{self._bare},{challenge},{without_proof}".encode()
        credential = new_credential(self._mechanism, salted, salt, iterations)
        self._signature = server_signature(self._mechanism, credential, said)
        proof = b64encode(client_proof(self._mechanism, salted, said)).decode()
        return f"{without_proof},p={proof}".encode()

    def _check(self, final: str, signature: bytes) -> None:
        if not secrets.compare_digest(final.encode(), b"v=" + b64encode(signature)):
            raise NotOurServer("it does not know our credentials: its signature is wrong")


@lru_cache(maxsize=8)
def _salted(mechanism: ScramMechanism, password: Secret, salt: bytes, iterations: int) -> bytes:
    """The salted password. It is cached, because it takes milliseconds and changes only with the password."""
    return salted_password(mechanism, password, salt, iterations)
