"""If Spark or its connector cannot start, one line says why and what to do, and the exit status is 2."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

from integration.spark.command import call
from integration.spark.jars import fetch_jars, locked_jars
from integration.support.server import Server

INSTALL = "install Java 17, or set JAVA_HOME to where it is"
SETTINGS = (
    '<ivysettings><settings defaultResolver="only"/><resolvers>'
    '<ibiblio name="only" m2compatible="true" root="{root}"/></resolvers></ivysettings>'
)
POM = (
    '<?xml version="1.0"?><project><modelVersion>4.0.0</modelVersion><groupId>{0}</groupId>'
    "<artifactId>{1}</artifactId><version>{2}</version><dependencies>{3}</dependencies></project>"
)
DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"
)


def why_not(server: Server, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """The only line that the command prints, without its name."""
    done = call("lag", "--bootstrap", server.bootstrap, *arguments, environment=environment)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2, line
    return line.removeprefix("kshim pipeline: ")


def java_that_says(directory: Path, line: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!{sys.executable}\nimport sys\nprint({line!r}, file=sys.stderr)\n")
    java.chmod(0o755)
    return directory


# ---- Java


def test_a_wrong_java_home(server: Server) -> None:
    why = why_not(server, environment={"JAVA_HOME": "/none"})
    assert why == f"Spark needs Java: JAVA_HOME=/none has no bin/java; {INSTALL}"


def test_no_java(server: Server, tmp_path: Path) -> None:
    why = why_not(server, environment={"JAVA_HOME": "", "PATH": str(tmp_path)})
    assert why == f"Spark needs Java: no java is on the PATH; {INSTALL}"


def test_a_java_that_is_too_old(server: Server, tmp_path: Path) -> None:
    home = java_that_says(tmp_path, 'java version "1.7.0_80"')
    why = why_not(server, environment={"JAVA_HOME": str(home)})
    assert why.startswith(f"Spark {pyspark.__version__} needs Java ")
    assert why.endswith(f"and {home}/bin/java is Java 7; {INSTALL}")


def test_spark_s_own_reason(server: Server) -> None:
    why = why_not(server, "--conf", "spark.master=nowhere", "--conf", f"spark.jars={fetch_jars()[0]}")
    assert why.startswith("Spark did not start: Master must ")


# ---- the connector


def ivy(tmp_path: Path, root: str) -> dict[str, Any]:
    """Settings with only one repository, and a cache in which nothing is kept."""
    path = tmp_path / "ivysettings.xml"
    path.write_text(SETTINGS.format(root=root))
    return {
        "arguments": ("--conf", f"spark.jars.ivySettings={path}"),
        "environment": {"XDG_CACHE_HOME": str(tmp_path / "cache")},
    }


def test_no_network_and_no_jar(server: Server, tmp_path: Path) -> None:
    found = ivy(tmp_path, "http://127.0.0.1:1/")
    why = why_not(server, *found["arguments"], environment=found["environment"])
    assert why.startswith("Spark's connector cannot be fetched: org.apache.spark:spark-sql-kafka-0-10_2.")
    assert f":{pyspark.__version__} is not kept yet, and http://127.0.0.1:1/" in why
    assert "does not answer (" in why
    assert "is there a network? Else give the jars with --conf spark.jars=FILE,FILE" in why


def test_an_unknown_host(server: Server, tmp_path: Path) -> None:
    found = ivy(tmp_path, "http://host.invalid/")
    why = why_not(server, *found["arguments"], environment=found["environment"])
    assert "is not kept yet, and http://host.invalid/" in why
    assert "is there a network? Else give" in why


def test_no_connector_for_this_version(server: Server, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    found = ivy(tmp_path, (tmp_path / "repository").as_uri())
    why = why_not(server, *found["arguments"], environment=found["environment"])
    assert why.startswith(
        "Spark's connector cannot be fetched: the repository has no org.apache.spark#spark-sql-"
    )
    assert (
        f";{pyspark.__version__}; install a PySpark for which it is there, as pip install 'kshim[spark]'"
        in why
    )


def test_a_jar_that_is_not_there(server: Server) -> None:
    why = why_not(server, "--conf", "spark.jars=/none.jar")
    assert why == "spark.jars: there is no file /none.jar; give the connector's jars, or no spark.jars"


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """A Maven repository on the disk that has the connector of this PySpark."""
    root = tmp_path / "repository"
    jars = locked_jars(pyspark.__version__)
    names = [tuple(jar.coordinates.split(":")) for jar in jars]
    for jar, path, name in zip(jars, fetch_jars(), names, strict=True):
        group, artifact, _ = name
        version = pyspark.__version__ if group == "org.apache.spark" else name[2]
        needs = names[1:] if jar is jars[0] else []
        needs = [(g, a, pyspark.__version__ if g == "org.apache.spark" else v) for g, a, v in needs]
        directory = root / group.replace(".", "/") / artifact / version
        directory.mkdir(parents=True)
        shutil.copy(path, directory / f"{artifact}-{version}.jar")
        dependencies = "".join(DEPENDENCY.format(*need) for need in needs)
        pom = POM.format(group, artifact, version, dependencies)
        (directory / f"{artifact}-{version}.pom").write_text(pom)
    return root.as_uri()


def test_it_is_fetched_once_and_only_the_table_is_printed(
    own_server: Server, tmp_path: Path, repository: str
) -> None:
    found = ivy(tmp_path, repository)
    asked = ("stuck", "--bootstrap", own_server.bootstrap)
    make_a_commit(own_server)
    first = call(*asked, *found["arguments"], environment=found["environment"])
    assert first.stderr == ""
    assert first.stdout.split()[:3] == ["group", "topic", "partition"]
    assert len(first.stdout.splitlines()) == 1
    shutil.rmtree(tmp_path / "repository")
    second = call(*asked, *found["arguments"], environment=found["environment"])
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")


def make_a_commit(server: Server) -> None:
    from kafka import TopicPartition

    from integration.support.clients import Admin, commit, new_consumer

    admin = Admin(server.bootstrap)
    admin.create_topic("orders", 1)
    admin.close()
    consumer = new_consumer(server.bootstrap, group_id="billing")
    consumer.assign([TopicPartition("orders", 0)])
    commit(consumer, {TopicPartition("orders", 0): 0})
    consumer.close()
