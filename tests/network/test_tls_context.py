"""Key stores and trust stores: every form that is read, and what is said of those that cannot be."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from kshim.configs.tls import WrongTls, tls_settings
from kshim.network.tls_context import new_context
from tests.network.tls_pair import LISTENER, Pair, alice, authority, new_tls, properties, server

CHAIN = server().certificate_pem + authority().certificate_pem


def context(**given: str) -> ssl.SSLContext:
    texts = {name.replace("_", "."): text for name, text in given.items()}
    return new_context(tls_settings(texts, LISTENER))


def encrypted_key(password: str) -> str:
    encryption = BestAvailableEncryption(password.encode())
    return server().key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def test_inline_pem_whose_lines_were_joined() -> None:
    joined = CHAIN.replace("\n", " ")
    key = server().key_pem.replace("\n", "")
    assert context(ssl_keystore_certificate_chain=joined, ssl_keystore_key=key)


def test_an_encrypted_key() -> None:
    key = encrypted_key("secret")
    given = {"ssl_keystore_certificate_chain": CHAIN, "ssl_keystore_key": key}
    assert context(**given, ssl_key_password="secret")
    for wrong in ("", "other"):
        with pytest.raises(WrongTls, match=r"private key in it that ssl\.key\.password decrypts"):
            context(**given, ssl_key_password=wrong)


@pytest.mark.parametrize("key_first", [True, False])
def test_a_pem_file(tmp_path: Path, key_first: bool) -> None:
    file = tmp_path / "server.pem"
    file.write_text(server().key_pem + CHAIN if key_first else CHAIN + server().key_pem)
    assert context(ssl_keystore_location=str(file), ssl_keystore_type="PEM")


def test_a_pkcs12_file(tmp_path: Path) -> None:
    file = tmp_path / "server.p12"
    file.write_bytes(server().pkcs12("server", authority().certificate, "secret"))
    assert context(ssl_keystore_location=str(file), ssl_keystore_password="secret")
    with pytest.raises(WrongTls, match=r"^ssl\.keystore\.password: expected the password of /"):
        context(ssl_keystore_location=str(file), ssl_keystore_password="other")


@pytest.mark.parametrize("name", ["ca.pem", "trust.p12"])
def test_trust_stores(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    is_pem = name.endswith(".pem")
    file.write_bytes(authority().certificate_pem.encode() if is_pem else authority().trust_store("changeit"))
    given = {
        "ssl.truststore.certificates": "",
        "ssl.truststore.location": str(file),
        "ssl.truststore.password": "changeit",
        "ssl.client.auth": "required",
    }
    found = new_context(tls_settings(properties() | given, LISTENER))
    assert found.verify_mode is ssl.CERT_REQUIRED
    assert [each["subject"] for each in found.get_ca_certs()] == [
        ((("commonName", "kshim test authority"),),)
    ]


def test_what_a_trust_store_has_is_trusted_without_its_issuer(tmp_path: Path) -> None:
    """Java takes each certificate of a trust store for an anchor, too."""
    pair = Pair(ssl_client_auth="required", ssl_truststore_certificates=alice().certificate_pem)
    pair.handshake(alice(), tmp_path)
    assert len(pair.protocol.principals) == 1
    pair.close()


def test_without_a_trust_store_the_system_s_is_used() -> None:
    given = properties(ssl_client_auth="required")
    del given["ssl.truststore.certificates"]
    assert new_context(tls_settings(given, LISTENER)).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, r"^ssl\.keystore\.location: cannot read /.*: No such file or directory$"),
        (b"", r"expected PEM or PKCS12 in /"),
        (b"nothing", r"expected PEM or PKCS12 in /"),
        (
            bytes.fromhex("feedfeed00000002"),
            r"is JKS: convert it with keytool -importkeystore -srckeystore /",
        ),
        (CHAIN.encode(), r"^ssl\.keystore\.location: expected a private key in /"),
        (server().key_pem.encode(), r"^ssl\.keystore\.location: expected a certificate in /"),
        ((alice().key_pem + CHAIN).encode(), r"the key of the first certificate, but /.* has another one's$"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + server().key_pem.encode(), r"."),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "server.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(WrongTls, match=why) as caught:
        context(ssl_keystore_location=str(file))
    assert "\n" not in str(caught.value)


def test_a_trust_store_without_certificates() -> None:
    given = properties(ssl_client_auth="required", ssl_truststore_certificates="nothing")
    with pytest.raises(WrongTls, match=r"^ssl\.truststore\.certificates: expected certificates in it$"):
        new_context(tls_settings(given, LISTENER))


@pytest.mark.parametrize(
    ("suites", "versions", "ciphers"),
    [
        ("TLS_AES_128_GCM_SHA256", (772, 772), set()),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", (771, 771), {"ECDHE-RSA-AES256-GCM-SHA384"}),
        (
            "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_CHACHA20_POLY1305_SHA256,"
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            (771, 772),
            {"AES128-SHA", "ECDHE-ECDSA-CHACHA20-POLY1305"},
        ),
        ("", (771, 772), {"ECDHE-RSA-AES256-GCM-SHA384"}),
    ],
)
def test_cipher_suites(suites: str, versions: tuple[int, int], ciphers: set[str]) -> None:
    found = new_context(tls_settings(properties(ssl_cipher_suites=suites), LISTENER))
    assert (found.minimum_version, found.maximum_version) == versions
    assert ciphers <= {cipher["name"] for cipher in found.get_ciphers()}


@pytest.mark.parametrize(
    "given",
    [
        {"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256", "ssl_enabled_protocols": "TLSv1.2"},
        {"ssl_cipher_suites": "TLS_NOBODY_WITH_NOTHING"},
    ],
)
def test_cipher_suites_that_cannot_be(given: dict[str, str]) -> None:
    with pytest.raises(WrongTls, match=r"^ssl\.cipher\.suites: expected"):
        new_context(tls_settings(properties(**given), LISTENER))


def test_stores_that_cannot_be_read_change_nothing() -> None:
    tls = new_tls(None)
    before = tls.settings, tls.context
    with pytest.raises(WrongTls):
        tls.use(tls_settings({"ssl.keystore.location": "/nowhere"}, LISTENER))
    assert (tls.settings, tls.context) == before
