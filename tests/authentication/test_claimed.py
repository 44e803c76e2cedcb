"""The name that a client's first token claims."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.authentication.claimed import MOST_BYTES, claimed_name
from kshim.configs.sasl import MECHANISMS


def bearer(claims: object) -> bytes:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return b"n,,\x01auth=Bearer e30." + part + b".sig\x01\x01"


@pytest.mark.parametrize(
    ("mechanism", "token", "name"),
    [
        ("PLAIN", b"\0alice\0secret", "alice"),
        ("PLAIN", b"alice\0alice\0secret", "alice"),
        ("PLAIN", b"alice", ""),
        ("SCRAM-SHA-256", b"n,,n=alice,r=nonce", "alice"),
        ("SCRAM-SHA-512", b"n,a=bob,n=a=2Cb=3Dc,r=nonce,tokenauth=true", "a,b=c"),
        ("SCRAM-SHA-512", b"c=biws,r=nonce,p=proof", ""),
        ("OAUTHBEARER", bearer({"sub": "alice"}), "alice"),
        ("OAUTHBEARER", bearer({"sub": 7}), ""),
        ("OAUTHBEARER", bearer(["sub"]), ""),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01", ""),
        ("OAUTHBEARER", b"\x01", ""),
        ("PLAIN", b"\0alice\0" + b"x" * MOST_BYTES, ""),
    ],
)
def test_names(mechanism: str, token: bytes, name: str) -> None:
    assert claimed_name(mechanism, token) == name


@given(st.sampled_from(MECHANISMS), st.binary(max_size=200))
def test_any_token_can_be_looked_into(mechanism: str, token: bytes) -> None:
    assert isinstance(claimed_name(mechanism, token), str)
