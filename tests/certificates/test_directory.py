"""A directory of certificates: whom they are for, who may read them, and that nothing is overwritten."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from kshim.certificates.directory import PASSWORD, CannotMake, make
from kshim.configs.properties_file import parse_properties
from kshim.configs.reading import new_config
from kshim.configs.tls import tls_settings
from kshim.network.certificate_names import subject
from kshim.network.tls_context import new_context


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_server_starts_with_its_properties(tmp_path: Path) -> None:
    made = make(tmp_path)
    config, warnings = new_config(parse_properties((tmp_path / "server.properties").read_text()))
    plain, tls = config.listener_configs
    assert (warnings, plain.url, tls.url) == ([], "PLAINTEXT://127.0.0.1:9092", "SSL://127.0.0.1:9093")
    settings = tls_settings(config.given, tls)
    assert settings.client_auth == "requested"
    assert new_context(settings).verify_mode is ssl.CERT_OPTIONAL
    assert made.server.items() <= config.given.items()


def test_names(tmp_path: Path) -> None:
    made = make(tmp_path, hosts=["kafka.example", "10.0.0.7"], clients=["alice", "CN=Bob B,OU=Sales"], days=3)
    assert [client.name for client in made.clients] == ["alice", "bob_b"]
    listening = parse_properties((tmp_path / "server.properties").read_text())
    assert listening["listeners"].endswith("SSL://0.0.0.0:9093")
    assert listening["advertised.listeners"] == "SSL://kafka.example:9093"
    server = certificate(tmp_path / "server.pem")
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kafka.example"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["10.0.0.7"]
    assert (server.not_valid_after_utc - server.not_valid_before_utc).days == 3
    ders = [ssl.PEM_cert_to_DER_cert((tmp_path / name).read_text()) for name in ("alice.pem", "bob_b.pem")]
    assert list(map(subject, ders)) == ["CN=alice", "CN=Bob B,OU=Sales"]


def test_stores_for_java(tmp_path: Path) -> None:
    make(tmp_path)
    keys = pkcs12.load_pkcs12((tmp_path / "client.p12").read_bytes(), PASSWORD.encode())
    assert keys.key is not None
    assert keys.cert is not None
    assert keys.cert.certificate == certificate(tmp_path / "client.pem")
    (trusted,) = pkcs12.load_pkcs12(
        (tmp_path / "truststore.p12").read_bytes(), PASSWORD.encode()
    ).additional_certs
    assert trusted.certificate == certificate(tmp_path / "ca.pem")


def test_only_their_owner_may_read_them(tmp_path: Path) -> None:
    make(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "client.pem").write_text("mine")
    with pytest.raises(CannotMake, match=r"client\.pem is there already; nothing was written"):
        make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["client.pem"]


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotMake, match=r"cannot write to /.*file: "):
        make(tmp_path / "file")


@pytest.mark.parametrize(
    ("clients", "why"),
    [
        (["=x"], "=x: expected a name such as alice"),
        (["CN=a,XX=b"], "expected a name such as alice"),
        ([""], "expected a name such as alice"),
        (["a", "CN=A"], "a: expected names of which no two are files of the same name"),
        (["server"], "server: expected names of which no two"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, clients: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make(tmp_path, clients=clients)
    assert list(tmp_path.iterdir()) == []
