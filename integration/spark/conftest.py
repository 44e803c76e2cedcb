"""One Spark session for all tests, because starting a JVM takes longest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration.spark.jars import fetch_jars
from integration.spark.streams import WAYS, through
from integration.support.toolchain import Missing, cache_dir, or_skip
from kshim.testing.spark import SparkUnavailable, spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(tmp_path_factory.mktemp("spark")))  # Spark writes files here
        with or_skip("Spark"):
            try:
                session = stack.enter_context(spark_session("kshim", jars=fetch_jars(), cache=cache_dir()))
            except SparkUnavailable as error:
                raise Missing(str(error)) from error
        yield session


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """The way in which Spark reads during the test: each of WAYS in turn."""
    with through(spark, request.param):
        yield request.param
