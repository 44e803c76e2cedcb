"""The commands and settings of docs/security.md about listeners and TLS work as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from integration.support.readme import ROOT
from integration.support.server import COMMAND
from kshim.configs.properties_file import parse_properties
from kshim.configs.reading import new_config

pytestmark = pytest.mark.kshim_only("it starts kshim")

PAGE = (ROOT / "docs" / "security.md").read_text()
FREE = ["--listen", "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", "--data-dir", ":memory:", "--end-with-stdin"]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", [each for each in blocks("properties") if "listeners=" in each])
def test_the_properties_can_be_used(block: str) -> None:
    _, warnings = new_config(parse_properties(block))
    assert warnings == []


def test_the_certificates_and_the_server_that_has_them(tmp_path: Path) -> None:
    (make, serve) = next(each for each in blocks("sh") if "kshim certificates" in each).splitlines()
    done = subprocess.run(
        [*COMMAND, *shlex.split(make)[1:]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    arguments = re.findall(r"(\w+)='([^']*)'", done.stdout.splitlines()[-1])
    client = {name: text for name, text in arguments if name != "bootstrap_servers"}
    with subprocess.Popen(
        [*COMMAND, *shlex.split(serve)[1:], *FREE],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        lines = dict(server.stdout.readline().rsplit(maxsplit=1) for _ in range(3))
        client["bootstrap_servers"] = lines["kshim listener SSL"]
        producer = KafkaProducer(**client)
        producer.send("greetings", b"hello").get(timeout=20)
        producer.close()
        consumer = KafkaConsumer("greetings", **client, group_id="readers", auto_offset_reset="earliest")
        assert next(iter(consumer)).value == b"hello"
        consumer.close()
        server.communicate()
