"""Spark's own Kafka connector: the jars that belong to a PySpark, fetched once.

The connector has the same version as PySpark, but is not in PySpark's wheel. See Spark's "Structured
Streaming + Kafka Integration Guide". Ivy, which is in the wheel, downloads it with its dependencies. With
`spark.jars.packages` Ivy would run at every start of Spark, which takes seconds; and the classes of jars can
be archived only if the jars are known before the start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from kshim.spark.errors import SparkUnavailable
from kshim.spark.java import check_java, java_command

FETCH_TIMEOUT_S: Final = 300

REPOSITORIES, IVY_SETTINGS = "spark.jars.repositories", "spark.jars.ivySettings"

# Only Maven's central repository, and repositories that the user names. Maven's local repository may have a
# POM without its jar, which Ivy would take for the whole artifact.
_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="all"/>
  <resolvers><chain name="all">{more}<ibiblio name="central" m2compatible="true"/></chain></resolvers>
</ivysettings>
"""
_REPOSITORY: Final = '<ibiblio name="repository-{number}" m2compatible="true" root={root}/>'

# Hadoop's client and Scala are in the wheel, and large.
_WANTED: Final = """\
<ivy-module version="2.0">
  <info organisation="kshim" module="pipeline"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{group}" name="{artifact}" rev="{version}" conf="default->default">
      <exclude org="org.apache.hadoop"/>
      <exclude org="org.scala-lang"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def connector(pyspark_version: str) -> str:
    """The connector's Maven coordinates, for `spark.jars.packages`. Scala is 2.12 up to 3.5, then 2.13."""
    scala = "2.12" if pyspark_version.startswith("3.") else "2.13"
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{pyspark_version}"


def default_cache() -> Path:
    """The directory of files that are made once: $XDG_CACHE_HOME/kshim, else ~/.cache/kshim."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kshim"


def is_kept(pyspark_version: str, cache: Path) -> bool:
    """True if the connector is in the cache already."""
    return bool(_kept(pyspark_version, cache))


def connector_jars(
    pyspark_version: str, spark_jars: Path, cache: Path, settings: Mapping[str, str]
) -> list[Path]:
    """The connector's jars, and those of its dependencies that Spark lacks. Downloads them if they are
    missing.

    spark_jars: the directory of Spark's own jars. cache: the directory to keep the new ones in. settings:
    Spark's settings; those that name repositories are used. Raises SparkUnavailable with the resolver's
    reason, or if Java is missing.
    """
    if not is_kept(pyspark_version, cache):
        check_java(pyspark_version)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="connector-") as directory:
            fetched = _fetch(connector(pyspark_version), spark_jars, Path(directory), settings)
            target = _directory(pyspark_version, cache)
            shutil.rmtree(target, ignore_errors=True)
            fetched.replace(target)
    return _kept(pyspark_version, cache)


def _directory(pyspark_version: str, cache: Path) -> Path:
    return cache / f"connector-of-pyspark-{pyspark_version}"


def _kept(pyspark_version: str, cache: Path) -> list[Path]:
    return sorted(_directory(pyspark_version, cache).glob("*.jar"))


# ---- Ivy


def _fetch(coordinates: str, spark_jars: Path, directory: Path, settings: Mapping[str, str]) -> Path:
    """Download the jars, and return their directory, below `directory`."""
    group, artifact, version = coordinates.split(":")
    (directory / "ivy.xml").write_text(_WANTED.format(group=group, artifact=artifact, version=version))
    jars = directory / "jars"
    try:
        done = subprocess.run(
            [
                *(java_command(), "-XX:TieredStopAtLevel=1", "-cp", f"{spark_jars}/*"),
                *("org.apache.ivy.Main", "-settings", str(_ivy_settings(directory, settings))),
                *("-ivy", str(directory / "ivy.xml"), "-cache", str(directory / "cache")),
                *("-retrieve", f"{jars}/[artifact]-[revision].[ext]"),
            ],
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SparkUnavailable(
            f"Spark's connector {coordinates} did not arrive in {FETCH_TIMEOUT_S} s; {_DO}"
        ) from error
    if done.returncode != 0 or not list(jars.glob(f"{artifact}-*.jar")):
        raise SparkUnavailable(why_not_fetched(coordinates, (done.stdout + done.stderr).splitlines()))
    leave_out_known(jars, (jar.name for jar in spark_jars.glob("*.jar")))
    return jars


def _ivy_settings(directory: Path, settings: Mapping[str, str]) -> Path:
    if IVY_SETTINGS in settings:
        return Path(settings[IVY_SETTINGS])
    roots = filter(None, settings.get(REPOSITORIES, "").split(","))
    more = (_REPOSITORY.format(number=number, root=quoteattr(root)) for number, root in enumerate(roots))
    path = directory / "ivysettings.xml"
    path.write_text(_SETTINGS.format(more="".join(more)))
    return path


def leave_out_known(jars: Path, known: Iterable[str]) -> None:
    """Delete the jars of artifacts that Spark has in any version, because Spark was tested with its own
    version.
    """
    artifacts = {_artifact(name) for name in known}
    for jar in jars.glob("*.jar"):
        if _artifact(jar.name) in artifacts:
            jar.unlink()


def _artifact(jar: str) -> str:
    return re.sub(r"-\d[^/]*\.jar$", "", jar)


# ---- why not

_DO: Final = (
    f"give the jars with --conf spark.jars=FILE,FILE, or another repository with --conf {REPOSITORIES}=URL"
)


def why_not_fetched(coordinates: str, output: Iterable[str]) -> str:
    """Return one line: why the resolver failed, by its output, and what to do."""
    lines = [line.strip() for line in output if line.strip()]
    for pattern, said in _REASONS:
        for line in lines:
            if found := pattern.search(line):
                reason = said.format(**found.groupdict(), coordinates=coordinates)
                return f"Spark's connector cannot be fetched: {reason}"
    last = lines[-1] if lines else "Ivy said nothing"
    return f"Spark's connector {coordinates} cannot be fetched: {last}; {_DO}"


# The order matters: if a repository cannot be reached, the output also says that the artifact is not found.
_NO_ANSWER: Final = (
    "{coordinates} is not kept yet, and {what} does not answer ({why}): is there a network? Else " + _DO
)
_REASONS: Final = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"(?:Handler|Server access [Ee]rror): (?P<why>.*?) ?url=(?P<what>\S+)", _NO_ANSWER),
        (r"(?P<why>Host \S+ not found)\. url=(?P<what>\S+)", _NO_ANSWER),
        (r"Server access error at url (?P<what>\S+) \((?P<why>.*)\)", _NO_ANSWER),
        (
            r":: (?P<what>\S+#\S+;\S+): not found",
            "the repository has no {what}; install a PySpark for which it is there, as pip install "
            "'kshim[spark]' does, or " + _DO,
        ),
        (r"(?P<what>download failed: .*|\[FAILED +\] .*)", "{what}; " + _DO),
    )
)
