import unittest

from confluent_kafka import Consumer, Producer

from kshim.testing import KshimTestCase


class TestOrders(KshimTestCase):
    kshim_topics = {"orders": 3}
    kshim_records = {"prices": ["3", "4"]}

    def test_an_order_is_sent(self):
        producer = Producer({"bootstrap.servers": self.kshim.bootstrap})
        producer.produce("orders", b"apple", b"key")
        producer.flush()
        (record,) = self.kshim.consume("orders", 1)
        self.assertEqual((record.key, record.value), (b"key", b"apple"))

    def test_each_test_begins_with_the_initial_topics(self):
        self.assertEqual(self.kshim.topics(), ["orders", "prices"])
        self.assertEqual(self.kshim.consume("orders"), [])

    def test_initial_records_are_there(self):
        self.assertEqual([record.value for record in self.kshim.consume("prices", 2)], [b"3", b"4"])

    def test_an_order_is_read_and_committed(self):
        self.kshim.produce("orders", ["apple"])
        consumer = Consumer(self.kshim.consumer_settings("confluent-kafka", "readers"))
        consumer.subscribe(["orders"])
        message = consumer.poll(10)
        self.assertEqual(message.value(), b"apple")
        consumer.commit(message, asynchronous=False)
        consumer.close()
        self.assertEqual(sum(self.kshim.offsets("readers").values()), 1)

    def test_a_wrong_argument_is_refused(self):
        with self.assertRaisesRegex(TypeError, "not one str"):
            self.kshim.produce("orders", "apple")

    def test_offsets_expire(self):
        self.kshim.set_offsets("readers", {("orders", 0): 0})
        self.kshim.advance(days=8)
        self.assertEqual(self.kshim.offsets("readers"), {})


class TestCoroutines(KshimTestCase, unittest.IsolatedAsyncioTestCase):
    async def test_an_order_is_sent(self):
        await self.async_kshim.produce("orders", ["apple"])
        (record,) = await self.async_kshim.consume("orders", 1)
        self.assertEqual(record.value, b"apple")


if __name__ == "__main__":
    unittest.main()
