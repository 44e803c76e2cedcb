"""`kshim certificates`: what it prints, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kshim.cli.certificates import certificates


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(certificates, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_it_says_how_to_start_and_how_to_connect(tmp_path: Path) -> None:
    status, printed, _ = run(str(tmp_path), "--host", "kafka.example", "--client", "alice", "--client", "bob")
    assert status == 0
    assert "a certificate for kafka.example, and for the clients alice, bob." in printed
    assert f"kshim serve --config {tmp_path}/server.properties" in printed
    assert f"{tmp_path}/alice.properties" in printed
    assert f"kcat -b kafka.example:9093 -L -F {tmp_path}/alice.librdkafka" in printed
    assert f"ssl_cafile='{tmp_path}/ca.pem'" in printed


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--client", "=x"), "kshim: --client =x: expected a name such as alice, or CN=alice,OU=Sales"),
        (("--client", "a", "--client", "A"), "kshim: --client a: expected names of which no two are"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    status, printed, told = run(str(tmp_path / "certs"), *arguments)
    assert (status, printed, told.count("\n")) == (2, "", 1)
    assert told.startswith(why)
    assert not (tmp_path / "certs").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    run(str(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    status, _, told = run(str(tmp_path))
    assert (status, told) == (2, f"kshim: {tmp_path}/ca.pem is there already; nothing was written\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
