"""Spark's sink and source at a listener with TLS that asks for certificates, and at one with SASL, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.streams import V1, V2
from integration.support.ports import Slot
from integration.support.server import Server, set_options
from kshim.certificates.directory import make

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="spark" password="secret"'


@pytest.mark.parametrize("way", [V1, V2], indirect=True)
@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_write_and_read(
    new_server: Callable[..., Server],
    spark: SparkSession,
    tmp_path: Path,
    topic: str,
    protocol: str,
    way: str,
) -> None:
    made, slot = make(tmp_path / "certificates"), Slot()
    properties = {
        **made.server,
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_spark="secret";',
    }
    names = ("PLAINTEXT", "SSL", "SASL_SSL")
    listeners = ",".join(f"{name}://127.0.0.1:{slot.port + number}" for number, name in enumerate(names))
    new_server(*set_options(properties), "--listen", listeners).start_at(slot)
    client = made.clients[0].java | {"security.protocol": protocol}
    if protocol == "SASL_SSL":
        client |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN};"}
    options = {f"kafka.{name}": text for name, text in client.items()}
    options["kafka.bootstrap.servers"] = f"127.0.0.1:{slot.port + names.index(protocol)}"

    numbers = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    numbers.write.format("kafka").mode("append").options(**options, topic=topic).save()
    found = spark.read.format("kafka").options(**options, subscribe=topic).load()
    read = found.select(found.value.cast("string").alias("value")).collect()
    assert sorted(int(row.value) for row in read) == list(range(100))
