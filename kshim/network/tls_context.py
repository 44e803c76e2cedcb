"""Makes OpenSSL's contexts from settings: reads key stores and trust stores, PEM or PKCS12.

The first bytes of a store show which it is.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kshim.configs.tls import ClientAuth, Store, TlsSettings, WrongTls
from kshim.configs.tls_client import TlsClientSettings

_JKS = bytes.fromhex("feedfeed")
_PEM_START = "-----BEGIN"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TLS13_SUITE = re.compile(r"TLS_(AES|CHACHA20)_")


class _Pem(NamedTuple):
    certificates: str
    key: str


def new_context(settings: TlsSettings) -> ssl.SSLContext:
    """Make the context of a listener from its stores. Raises WrongTls if one cannot be read or used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, settings)
    _load_keys(context, settings.keys)
    context.verify_mode = _VERIFY[settings.client_auth]
    if settings.client_auth is not ClientAuth.NONE:
        _load_trusted(context, settings.trusted, ssl.Purpose.CLIENT_AUTH)
    return context


def new_client_context(settings: TlsClientSettings) -> ssl.SSLContext:
    """Make the context of connections to servers from its stores. Raises WrongTls if one cannot be read or
    used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.checks_host
    _set_versions(context, settings)
    if settings.keys is not None:
        _load_keys(context, settings.keys)
    _load_trusted(context, settings.trusted, ssl.Purpose.SERVER_AUTH)
    return context


def reason_of(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in lower case."""
    return getattr(error, "verify_message", "") or (error.reason or str(error)).replace("_", " ").lower()


def _set_versions(context: ssl.SSLContext, spoken: TlsSettings | TlsClientSettings) -> None:
    suites = spoken.cipher_suites
    older = [_openssl_name(suite) for suite in suites if not _TLS13_SUITE.match(suite)]
    protocols = [
        protocol
        for protocol in spoken.protocols
        if not suites or (bool(older) if protocol == "TLSv1.2" else len(older) < len(suites))
    ]
    if not protocols:
        raise WrongTls("ssl.cipher.suites", "expected suites of the versions in ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = _VERSIONS[protocols[0]], _VERSIONS[protocols[-1]]
    try:
        if older:
            context.set_ciphers(":".join(older))
    except ssl.SSLError:
        raise WrongTls("ssl.cipher.suites", "expected at least one suite that OpenSSL has") from None


def _openssl_name(suite: str) -> str:
    """Turn Java's name of a suite into OpenSSL's.

    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 becomes ECDHE-RSA-AES256-GCM-SHA384.
    """
    name = suite.removeprefix("TLS_").replace("RSA_WITH_", "", suite.startswith("TLS_RSA_WITH"))
    name = name.replace("_WITH_", "_").replace("POLY1305_SHA256", "POLY1305").replace("_CBC_", "_")
    return re.sub(r"AES_(\d+)", r"AES\1", name).replace("_", "-")


def _load_keys(context: ssl.SSLContext, store: Store) -> None:
    pem = _read(store)
    if not pem.certificates:
        raise WrongTls(store.property, f"expected a certificate in {_where(store)}")
    if not pem.key:
        raise WrongTls(store.property, f"expected a private key in {_where(store)}")
    try:
        with _as_file(pem.certificates + pem.key) as name:
            context.load_cert_chain(name, password=store.key_password or store.password)
    except ssl.SSLError as error:
        raise WrongTls(store.property, _why_no_keys(error, store)) from None


def _why_no_keys(error: ssl.SSLError, store: Store) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"expected the key of the first certificate, but {_where(store)} has another one's"
    if "ENCRYPTED" in (store.key_pem or "ENCRYPTED") and error.library != "X509":
        return f"expected a private key in {_where(store)} that ssl.key.password decrypts"
    return f"expected certificates and a private key in {_where(store)}: {error.reason or error}"


def _load_trusted(context: ssl.SSLContext, store: Store | None, purpose: ssl.Purpose) -> None:
    # As in Java, every certificate in the trust store is trusted, not only self-signed ones.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if store is None:
        context.load_default_certs(purpose)
        return
    certificates = _read(store).certificates
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError):
        raise WrongTls(store.property, f"expected certificates in {_where(store)}") from None


def _where(store: Store) -> str:
    return store.location or "it"


def _read(store: Store) -> _Pem:
    if not store.location:
        return _pem(f"{store.pem}\n{store.key_pem}")
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise WrongTls(store.property, f"cannot read {store.location}: {error.strerror}") from None
    if data.startswith(_JKS):
        path = store.location
        convert = f"-srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
        why = f"expected PEM or PKCS12, but {path} is JKS: convert it with keytool -importkeystore {convert}"
        raise WrongTls(store.property, why)
    text = data.decode("latin-1")
    return _pem(text) if _PEM_START in text else _pkcs12(data, store)


def _pem(text: str) -> _Pem:
    """Return the blocks of a PEM text, which may have lost its line ends in a properties file."""
    certificates, keys = [], []
    for kind, body in _BLOCK.findall(text):
        if ":" not in body:  # a block with headers keeps its lines
            body = "\n" + "\n".join(re.findall(".{1,64}", re.sub(r"\s", "", body))) + "\n"
        block = f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"
        if kind.endswith("CERTIFICATE"):
            certificates.append(block)
        elif kind.endswith("PRIVATE KEY"):
            keys.append(block)
    return _Pem("".join(certificates), "".join(keys[:1]))


def _pkcs12(data: bytes, store: Store) -> _Pem:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        found = pkcs12.load_pkcs12(data, store.password.encode() or None)
    except ValueError as error:
        if "password" in str(error).lower():
            name = store.property.replace("location", "password")
            raise WrongTls(name, f"expected the password of {store.location}") from None
        raise WrongTls(store.property, f"expected PEM or PKCS12 in {store.location}") from None
    own = [found.cert] if found.cert else []
    certificates = [each.certificate for each in (*own, *found.additional_certs)]
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) if found.key else b""
    return _Pem(
        b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates).decode(),
        key.decode(),
    )


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Yield the name of a file that holds a text, because OpenSSL reads keys only from files. On Linux the
    file is in memory.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kshim")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile("w") as file:  # other users cannot read it
            file.write(text)
            file.flush()
            yield file.name
