"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802): the client proves that it knows the password.

An unknown user gets a challenge like any other, and then fails as with a wrong password.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import NamedTuple

from kshim.authentication.mechanism import (
    Answer,
    AuthenticationFailed,
    Login,
    Unreadable,
    check_authorization_id,
    text_of,
)
from kshim.authentication.plain import FOR_ANOTHER
from kshim.authentication.scram_credential import ScramCredential, ScramMechanism
from kshim.authentication.scram_keys import proves, server_signature

MOST_BYTES = 16 * 1024
"""Most bytes of a message. Real ones have some hundreds."""
_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-+\--\x7f]+"
_NONCE = r"[!-+\--~]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_FIRST = re.compile(
    rf"n,(?:a=(?P<asked>{_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_OF_DELEGATION_TOKEN = re.compile(r",tokenauth=(?i:true)(?:,|$)")


class Keys(NamedTuple):
    """A user's credential, real or invented."""

    credential: ScramCredential
    is_known: bool
    """False if the credential is invented for an unknown user."""


class _Begun(NamedTuple):
    bare: str
    challenge: str
    nonce: str
    keys: Keys


class Scram:
    """One exchange. The client first sends its name and a nonce, then its proof."""

    def __init__(
        self, mechanism: ScramMechanism, keys: Callable[[str], Keys], new_nonce: Callable[[], str]
    ) -> None:
        """keys: takes a user name, known or not. new_nonce: returns a random text."""
        self._mechanism = mechanism
        self._keys = keys
        self._new_nonce = new_nonce
        self._begun: _Begun | None = None
        self.user = ""

    def step(self, token: bytes, now_ms: int) -> Answer:
        text = text_of(token, MOST_BYTES)
        return self._begin(text) if self._begun is None else self._end(text, self._begun)

    def _begin(self, text: str) -> Answer:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise AuthenticationFailed("its first message is malformed")
        self.user = _user_name(found["name"])
        if _OF_DELEGATION_TOKEN.search(found["extensions"]):
            raise AuthenticationFailed("it authenticates with a delegation token, of which there are none")
        keys = self._keys(self.user)
        check_authorization_id(found["asked"] or "", self.user, FOR_ANOTHER)
        nonce = found["nonce"] + self._new_nonce()
        salt = b64encode(keys.credential.salt).decode()
        challenge = f"r={nonce},s={salt},i={keys.credential.iterations}"
        self._begun = _Begun(found["bare"], challenge, nonce, keys)
        return Answer(challenge.encode())

    def _end(self, text: str, begun: _Begun) -> Answer:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise AuthenticationFailed("its final message is malformed")
        if found["nonce"] != begun.nonce:
            raise AuthenticationFailed("its final message has another nonce")
        credential, is_known = begun.keys
        proof = b64decode(found["proof"])
        if len(proof) != len(credential.stored_key):
            raise Unreadable("its proof is too long or too short")
        said = f"{begun.bare},{begun.challenge},{found['without_proof']}".encode()
        if not proves(self._mechanism, credential, said, proof) or not is_known:
            raise AuthenticationFailed("unknown user or wrong password")
        signature = server_signature(self._mechanism, credential, said)
        return Answer(b"v=" + binascii.b2a_base64(signature, newline=False), Login(self.user))


def _user_name(text: str) -> str:
    """Decode the name in a SCRAM message, where =2C stands for a comma, and =3D for an equals sign."""
    return text.replace("=2C", ",").replace("=3D", "=")
