"""A server for the tests of a unittest class.

class TestOrders(KshimTestCase):
    kshim_properties = {"num.partitions": "3"}

    def test_it(self) -> None:
        self.kshim.produce("orders", ["first"])

For coroutines: `class TestOrders(KshimTestCase, unittest.IsolatedAsyncioTestCase)`, and `self.async_kshim`.
With KSHIM_TEST_BOOTSTRAP=HOST:PORT in the environment the tests run against that Kafka cluster.
"""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from typing import ClassVar

from kshim.testing.asynchronous import AsyncKshim
from kshim.testing.given import server_for_tests
from kshim.testing.initial import GivenRecords, GivenTopics
from kshim.testing.running import Kshim

__all__ = ["KshimTestCase"]


class KshimTestCase(unittest.TestCase):
    """One server for all tests of a class; `setUp` resets it, so each test finds it empty."""

    kshim_brokers: ClassVar[int] = 1
    kshim_properties: ClassVar[Mapping[str, str]] = {}
    kshim_tls: ClassVar[bool | Sequence[str]] = False
    kshim_topics: ClassVar[GivenTopics] = ()
    kshim_records: ClassVar[GivenRecords] = {}
    kshim: ClassVar[Kshim]
    async_kshim: ClassVar[AsyncKshim]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.kshim = cls.enterClassContext(
            server_for_tests(
                cls.kshim_brokers, cls.kshim_properties, cls.kshim_tls, cls.kshim_topics, cls.kshim_records
            )
        )
        cls.async_kshim = AsyncKshim(cls.kshim)

    def setUp(self) -> None:
        super().setUp()
        self.kshim.reset()
