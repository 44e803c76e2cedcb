"""Signed tokens (RFC 7515), checked with the public keys of a file (JWKS, RFC 7517).

PyJWT checks the signatures. It is needed only by listeners with signed tokens, so only these import this
module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import jwt

from kshim.authentication.tokens import Claims, TokenRefused

if TYPE_CHECKING:
    from jwt.types import Options

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms with public keys. With a shared key, everybody who can check a token could make one."""


class SignedTokens:
    """Checks token signatures. `of_url` reads the key file once; later changes of the file have no effect."""

    def __init__(self, keys: list[jwt.PyJWK]) -> None:
        self._keys = keys

    @classmethod
    def of_url(cls, url: str) -> SignedTokens:
        """Read the keys from the file of a URL file:///PATH. Raises ValueError, in words for the user."""
        parts = urlsplit(url)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise ValueError("expected file:///PATH, a JSON file with keys (JWKS)")
        path = Path(unquote(parts.path))
        try:
            found = json.loads(path.read_bytes())
            keys = [key for each in found["keys"] if (key := _key(each)) is not None]
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(f"{path} is no JSON file with keys (JWKS)") from None
        if not keys:
            raise ValueError(f"{path} has no public key for {', '.join(ALGORITHMS)}")
        return cls(keys)

    def claims(self, token: str) -> Claims:
        """The claims of a token that one of the keys has signed. Raises TokenRefused for any other token."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise TokenRefused("it cannot be read") from None
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise TokenRefused("its algorithm is none of a public key")
        fitting = [key for key in self._keys if header.get("kid") in (None, key.key_id)]
        for key in fitting:
            try:
                return _verified(token, key, algorithm)
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
                continue
        raise TokenRefused("no key of the JWKS file has signed it")


def _key(given: dict[str, object]) -> jwt.PyJWK | None:
    """Read a public key; None if its algorithm is not one of ALGORITHMS, or is unknown to PyJWT."""
    try:
        key = jwt.PyJWK(given)
    except (jwt.PyJWTError, ValueError):
        return None
    return key if key.algorithm_name in ALGORITHMS else None


def _verified(token: str, key: jwt.PyJWK, algorithm: str) -> Claims:
    """Check the signature, and return the claims. ClaimRules checks these, because it takes the time as an
    argument.
    """
    unchecked: Options = {
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
        "verify_aud": False,
        "verify_iss": False,
        "verify_sub": False,
        "verify_jti": False,
    }
    claims: Claims = jwt.decode(token, key.key, algorithms=[algorithm], options=unchecked)
    return claims
