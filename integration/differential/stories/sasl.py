"""Stories of clients that authenticate with SASL, or send what they may not."""

from __future__ import annotations

import struct
import time

from integration.differential.stories.sasl_talk import (
    PASSWORD,
    USER,
    SaslTalk,
    bearer,
    final,
    unsecured,
)
from integration.support.handmade import request
from kshim.testing.wire import framed, sized
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
RIGHT = f"\0{USER}\0{PASSWORD}".encode()
HANDSHAKE, AUTHENTICATE, API_VERSIONS, METADATA = 17, 36, 18, 3
BASE64URL = str.maketrans("+/", "-_")
NEW_VERSION = request(API_VERSIONS, 99, b"\0\2x\2y\0")


def plain_at_every_version(talk: SaslTalk) -> None:
    for version in (0, 1, 2):
        talk.anew(f"SaslAuthenticate v{version}")
        talk.handshake("PLAIN")
        talk.token(RIGHT, version)
        talk.ask(1, MetadataRequest(topics=()))


def plain_after_versions(talk: SaslTalk) -> None:
    for version in (0, 3, 4):
        talk.anew(f"ApiVersions v{version}")
        talk.versions(version)
        talk.handshake("PLAIN")
        talk.token(RIGHT)
        talk.versions(version)
        talk.versions(version)


def plain_with_bare_tokens(talk: SaslTalk) -> None:
    talk.handshake("PLAIN", 0)
    talk.bare(RIGHT)
    talk.ask(1, MetadataRequest(topics=()))
    for token in (f"\0{USER}\0wrong", "\0nobody\0x", "\0\0x", "", f"bob\0{USER}\0{PASSWORD}"):
        talk.anew(f"the bare token {token!r}")
        talk.handshake("PLAIN", 0)
        talk.bare(token.encode())
    talk.anew("a header where a bare token is due")
    talk.handshake("PLAIN", 0)
    talk.token(RIGHT)


def plain_failures(talk: SaslTalk) -> None:
    tokens = [
        f"\0{USER}\0wrong",
        "\0nobody\0wrong",
        f"\0nobody\0{PASSWORD}",
        f"\0{USER}\0",
        f"\0\0{PASSWORD}",
        f"\0{USER}",
        USER,
        "",
        "\0",
        f"{USER}\0{USER}\0{PASSWORD}",
        f"bob\0{USER}\0{PASSWORD}",
        f"bob\0{USER}\0wrong",
        f"\0{USER}\0{PASSWORD}\0more",
        f"\0{USER.upper()}\0{PASSWORD}",
        "\0ünï\0pässwörd",
    ]
    for token in tokens:
        talk.anew(f"{token!r}")
        talk.handshake("PLAIN")
        talk.token(token.encode())
        talk.closed()
    talk.anew("bytes that are no UTF-8")
    talk.handshake("PLAIN")
    talk.token(b"\0\xff\xfe\0\x80")


def scram_at_every_version(talk: SaslTalk) -> None:
    for mechanism in SCRAM:
        for version in (0, 1, 2):
            talk.anew(f"{mechanism} v{version}")
            talk.handshake(mechanism)
            talk.scram(mechanism, version=version)
            talk.ask(1, MetadataRequest(topics=()))


def scram_with_bare_tokens(talk: SaslTalk) -> None:
    for password in (PASSWORD, "wrong"):
        talk.anew(password)
        talk.handshake(SCRAM[0], 0)
        first = f"n,,n={USER},r=fyko+d2lbbFgONRv9qkxdawL"
        challenge = talk.bare(first.encode())
        assert challenge is not None
        talk.bare(final(SCRAM[0], first, challenge.decode(), password))
        talk.ask(1, MetadataRequest(topics=()))


def scram_failures(talk: SaslTalk) -> None:
    for mechanism in SCRAM:
        talk.anew(f"{mechanism}: a wrong password")
        talk.handshake(mechanism)
        talk.scram(mechanism, password="wrong")
        talk.closed()
    mechanism = SCRAM[0]
    firsts = [
        f"n,a={USER},n={{user}},r={{nonce}}",
        "n,a=bob,n={user},r={nonce}",
        "n,,n={user},r={nonce},tokenauth=false",
        "n,,n={user},r={nonce},tokenauth=true",
        "y,,n={user},r={nonce}",
        "p=tls-unique,,n={user},r={nonce}",
        "n,,n={user}",
        "n,,r={nonce},n={user}",
        "n,,n=,r={nonce}",
        "n,,n=a=b,r={nonce}",
        "n,,n={user},r=",
        "n,,n={user},r={nonce},",
        "n,,n=ünï,r={nonce}",
        "",
    ]
    for first in firsts:
        talk.anew(f"begins with {first!r}")
        talk.handshake(mechanism)
        talk.scram(mechanism, first=first)
    talk.anew("a proof that is too short")
    talk.handshake(mechanism)
    talk.scram(mechanism, proof=b"short")
    talk.anew("no proof")
    talk.handshake(mechanism)
    talk.scram(mechanism, proof=b"")
    talk.anew("another nonce")
    talk.handshake(mechanism)
    talk.token(f"n,,n={USER},r=abc".encode())
    talk.token(b"c=biws,r=abc,p=" + b"A" * 43 + b"=")
    talk.anew("no final message")
    talk.handshake(mechanism)
    talk.token(f"n,,n={USER},r=abc".encode())
    talk.token(b"")
    talk.anew("a final message first")
    talk.handshake(mechanism)
    talk.token(b"c=biws,r=abc,p=" + b"A" * 43 + b"=")


def oauthbearer(talk: SaslTalk) -> None:
    for version in (0, 1, 2):
        talk.anew(f"v{version}")
        talk.handshake("OAUTHBEARER")
        talk.token(bearer(unsecured()), version)
        talk.ask(1, MetadataRequest(topics=()))
    now_s = time.time()
    tokens = {
        "an extension": bearer(unsecured(), more="\x01trait=x"),
        "the right authorization id": bearer(unsecured(), USER),
        "a wrong authorization id": bearer(unsecured(), "bob"),
        "no expiry": bearer(unsecured(exp=None)),
        "no subject": bearer(unsecured(sub=None)),
        "an empty subject": bearer(unsecured(sub=" ")),
        "a number as subject": bearer(unsecured(sub=7)),
        "an expired token": bearer(unsecured(exp=now_s - 1, iat=now_s - 100)),
        "issued in the future": bearer(unsecured(iat=now_s + 100)),
        "no issue time": bearer(unsecured(iat=None)),
        "expires before it was issued": bearer(unsecured(iat=now_s + 90, exp=now_s + 60)),
        "an expiry that is a text": bearer(unsecured(exp="soon")),
        "a fraction as expiry": bearer(unsecured(exp=now_s + 60.5)),
        "an algorithm": bearer(unsecured({"alg": "HS256"})),
        "a signature": bearer(unsecured() + "c2ln"),
        "two parts": bearer("e30.e30"),
        "four parts": bearer("e30.e30.e30.e30"),
        "no JSON": bearer("YQ.YQ."),
        "a JSON array": bearer("W10.W10."),
        "no Base64": bearer("+.~."),
        "the alphabet of Base64URL": bearer(unsecured(sub="a??>>").translate(BASE64URL)),
        "padded parts": bearer("eyJhbGciOiJub25lIn0=." + unsecured().split(".")[1] + "."),
    }
    for what, token in tokens.items():
        talk.anew(what)
        talk.handshake("OAUTHBEARER")
        if talk.token(token):
            talk.token(b"\x01")
    malformed = {
        "another scheme": bearer("x").replace(b"Bearer", b"Basic"),
        "no token": bearer(""),
        "no auth": b"n,,\x01x=y\x01\x01",
        "no separator": b"n,,auth=Bearer x",
        "nothing": b"",
        "a lone separator": b"\x01",
    }
    for what, token in malformed.items():
        talk.anew(what)
        talk.handshake("OAUTHBEARER")
        talk.token(token)
    talk.anew("a second token after a refused one")
    talk.handshake("OAUTHBEARER")
    talk.token(bearer(unsecured(exp=None)))
    talk.token(bearer(unsecured()))


def mechanisms_that_are_not_enabled(talk: SaslTalk) -> None:
    for mechanism in ("GSSAPI", "plain", "", "X" * 300):
        for version in (0, 1):
            talk.anew(f"{mechanism[:10]!r} v{version}")
            talk.handshake(mechanism, version)
            talk.closed()


def requests_out_of_order(talk: SaslTalk) -> None:
    talk.anew("a Metadata first")
    talk.ask(1, MetadataRequest(topics=()))
    talk.anew("a Metadata after ApiVersions")
    talk.versions()
    talk.ask(1, MetadataRequest(topics=()))
    talk.anew("a token first")
    talk.token(RIGHT)
    talk.anew("a token after ApiVersions")
    talk.versions()
    talk.token(RIGHT)
    talk.anew("ApiVersions twice")
    talk.versions()
    talk.versions()
    talk.anew("ApiVersions after the handshake")
    talk.handshake("PLAIN")
    talk.versions()
    talk.closed()
    talk.anew("a Metadata after the handshake")
    talk.handshake("PLAIN")
    talk.ask(9, MetadataRequest(topics=None))
    talk.anew("a handshake after the handshake")
    talk.handshake("PLAIN")
    talk.handshake("PLAIN")
    talk.closed()
    talk.anew("a ListGroups after the handshake")
    talk.handshake("PLAIN")
    talk.ask(4, ListGroupsRequest())
    talk.anew("a Metadata within SCRAM")
    talk.handshake(SCRAM[0])
    talk.token(f"n,,n={USER},r=abc".encode())
    talk.ask(1, MetadataRequest(topics=()))
    talk.anew("a handshake after the login")
    talk.handshake("PLAIN")
    talk.token(RIGHT)
    talk.handshake("PLAIN", 0)
    talk.handshake("PLAIN", 1)
    talk.token(RIGHT)
    talk.ask(1, MetadataRequest(topics=()))


def a_session_that_ends(talk: SaslTalk) -> None:
    """connections.max.reauth.ms is 5 s for SCRAM-SHA-512; what time does is what is asked."""
    mechanism = SCRAM[1]
    talk.handshake(mechanism)
    talk.scram(mechanism)
    talk.ask(1, MetadataRequest(topics=()))
    time.sleep(5.2)
    talk.ask(1, MetadataRequest(topics=()))
    for version in (0, 1, 2):
        talk.anew(f"again with v{version}")
        talk.handshake(mechanism)
        talk.scram(mechanism, version=version)
        time.sleep(3)
        talk.handshake(mechanism)
        talk.scram(mechanism, version=version)
        time.sleep(3)
        talk.ask(1, MetadataRequest(topics=()))
    talk.anew("again when it has ended")
    talk.handshake(mechanism)
    talk.scram(mechanism)
    time.sleep(5.2)
    talk.handshake(mechanism)
    talk.scram(mechanism)
    talk.ask(1, MetadataRequest(topics=()))


def failures_of_a_second_login(talk: SaslTalk) -> None:
    mechanism = SCRAM[1]
    for what in ("user", "password", "mechanism", "bare", "at once", "other requests"):
        talk.anew(f"another {what}")
        talk.handshake(mechanism)
        talk.scram(mechanism)
        if what == "at once":
            talk.handshake(mechanism)
            talk.handshake(mechanism)
            talk.closed()
            continue
        talk.handshake("PLAIN" if what == "mechanism" else mechanism, 0 if what == "bare" else 1)
        if what == "user":
            talk.scram(mechanism, "bob")
        elif what == "password":
            talk.scram(mechanism, password="wrong")
        elif what == "mechanism":
            talk.token(RIGHT)
        elif what == "bare":
            talk.bare(f"n,,n={USER},r=fyko+d2lbbFgONRv9qkxdawL".encode())
        else:
            talk.ask(1, MetadataRequest(topics=()))
        talk.closed()


def versions_that_are_not_served(talk: SaslTalk) -> None:
    frames = {
        "ApiVersions v99": NEW_VERSION,
        "ApiVersions v99 with the header of v0": request(API_VERSIONS, 99),
        "SaslHandshake v9": request(HANDSHAKE, 9, b"\0\5PLAIN"),
        "Metadata v99": request(METADATA, 99),
        "an API that there is not": request(999, 0),
        "a frame of one byte": b"\0\0\0\1x",
        "an empty frame": b"\0\0\0\0",
        "a token of Kerberos": b"\0\0\0\x10\x60\x0e" + b"x" * 14,
        "a handshake that is cut off": request(HANDSHAKE, 1, b"\0\5PL"),
        "a negative size": b"\xff\xff\xff\xff",
    }
    for what, frame in frames.items():
        talk.anew(what)
        talk.raw(frame)
    talk.anew("ApiVersions v99, then all is well")
    talk.raw(NEW_VERSION)
    talk.versions()
    talk.handshake("PLAIN")
    talk.token(RIGHT)
    talk.anew("SaslAuthenticate v9")
    talk.handshake("PLAIN")
    talk.raw(request(AUTHENTICATE, 9, sized(RIGHT)))
    talk.anew("a SaslAuthenticate that is cut off")
    talk.handshake("PLAIN")
    talk.raw(request(AUTHENTICATE, 1, struct.pack(">i", 100) + RIGHT))
    talk.anew("no frame of Kafka after the handshake")
    talk.handshake("PLAIN")
    talk.raw(b"\0\0\0\3abc")


def sizes(talk: SaslTalk) -> None:
    """sasl.server.max.receive.size counts before the login only."""
    talk.anew("a token of the largest size")
    talk.handshake("PLAIN")
    talk.token(b"x" * 1900)
    talk.anew("a token that is too large")
    talk.handshake("PLAIN")
    talk.token(b"x" * 2100)
    talk.anew("a first request that is too large")
    talk.raw(struct.pack(">i", 2_001))
    talk.anew("a large request after the login")
    talk.handshake("PLAIN")
    talk.token(RIGHT)
    talk.ask(1, MetadataRequest(topics=()))
    talk.raw(request(METADATA, 1, b"\0\0\0\0" + b"x" * 5000))


def what_follows_a_failure(talk: SaslTalk) -> None:
    """Requests that come with a wrong password are not answered."""
    talk.handshake("PLAIN")
    failing = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    talk.wire.sendall(framed(2, failing) + framed(1, MetadataRequest(topics=())) * 3)
    talk.token(RIGHT)
    talk.closed()


def requests_sent_ahead(talk: SaslTalk) -> None:
    """The whole login, and a request behind it, in one write."""
    login = framed(1, SaslHandshakeRequest(mechanism="PLAIN"))
    login += framed(2, SaslAuthenticateRequest(auth_bytes=RIGHT))
    talk.raw(login + framed(1, MetadataRequest(topics=())))
    talk.raw(b"")
    talk.raw(b"")
