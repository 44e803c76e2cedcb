"""An authority for tests, and the certificates that it issues. Its own private key is never stored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

_LATE_CLOCKS = timedelta(hours=1)


class Issued(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The private key in PKCS#8, as Kafka reads it."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def pkcs12(self, name: str, issuer: x509.Certificate, password: str) -> bytes:
        """A PKCS12 key store with the certificate, its key and its issuer."""
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, [issuer], encryption
        )


class Authority:
    """Issues certificates that are valid for some days from now."""

    def __init__(self, name: str = "CN=kshim test authority", *, days: int = 365) -> None:
        self._days = days
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        usage = _key_usage(key_cert_sign=True, crl_sign=True)
        self._own = _issued(parse_name(name), days, (constraints, usage))

    @property
    def certificate(self) -> x509.Certificate:
        return self._own.certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def trust_store(self, password: str) -> bytes:
        """A PKCS12 trust store, as Java reads it."""
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        return pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode()))

    def server(self, hosts: Iterable[str], *, days: int | None = None) -> Issued:
        """The certificate of a server with these names and addresses. days: negative for an expired one."""
        hosts = list(hosts)
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(f"CN={hosts[0]}", days, names, usage)

    def client(self, name: str, *, days: int | None = None) -> Issued:
        """The certificate of a client. Raises ValueError, in words for the user.

        name: a name such as alice, or a distinguished name such as CN=alice,OU=Sales.
        """
        return self._issue(name, days, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))

    def _issue(self, name: str, days: int | None, *extensions: x509.ExtensionType) -> Issued:
        valid_days = self._days if days is None else days
        usage = _key_usage(digital_signature=True)
        return _issued(parse_name(name), valid_days, (*extensions, usage), self._own)


def _issued(
    subject: x509.Name, days: int, extensions: Iterable[x509.ExtensionType], by: Issued | None = None
) -> Issued:
    """A new key and its certificate. by: the issuer, which signs it; None for a self-signed one."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer, issuer = (by.key, by.certificate.subject) if by else (key, subject)
    now = datetime.now(UTC)
    until = now + timedelta(days=days)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, until) - _LATE_CLOCKS)
        .not_valid_after(until)
    )
    by_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    own_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    for extension in (*extensions, own_key, by_key):
        is_critical = isinstance(extension, (x509.BasicConstraints, x509.KeyUsage))
        builder = builder.add_extension(extension, is_critical)
    return Issued(builder.sign(signer, hashes.SHA256()), key)


def parse_name(text: str) -> x509.Name:
    """Parse a distinguished name; a text without "=" is its CN. Raises ValueError, in words for the user."""
    try:
        found = x509.Name.from_rfc4514_string(text if "=" in text else f"CN={text}")
    except (ValueError, TypeError):
        found = x509.Name([])
    if not list(found):
        raise ValueError(f"{text}: expected a name such as alice, or CN=alice,OU=Sales,O=Example")
    return found


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(**usages: bool) -> x509.KeyUsage:
    all_ = dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
            *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    return x509.KeyUsage(**{**all_, **usages})
