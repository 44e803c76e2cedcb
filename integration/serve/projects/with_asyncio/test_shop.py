import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


@pytest.fixture
async def producer(async_kshim):
    producer = AIOKafkaProducer(bootstrap_servers=async_kshim.bootstrap)
    await producer.start()
    yield producer
    await producer.stop()


async def test_an_order_is_sent(async_kshim, producer, kshim_topic):
    await producer.send_and_wait(kshim_topic, b"apple")
    assert [record.value for record in await async_kshim.consume(kshim_topic, 1)] == [b"apple"]


async def test_an_order_is_read_and_committed(async_kshim, kshim_topic, kshim_group):
    await async_kshim.produce(kshim_topic, ["apple"])
    settings = async_kshim.consumer_settings("aiokafka", kshim_group)
    async with AIOKafkaConsumer(kshim_topic, enable_auto_commit=False, **settings) as consumer:
        assert (await consumer.getone()).value == b"apple"
        await consumer.commit()
    assert await async_kshim.offsets(kshim_group) == {(kshim_topic, 0): 1}


async def test_the_loop_goes_on_while_the_kit_waits(async_kshim, producer, kshim_topic):
    reading = asyncio.create_task(async_kshim.consume(kshim_topic, 2))
    for value in (b"apple", b"pear"):
        await producer.send_and_wait(kshim_topic, value)
    assert [record.value for record in await reading] == [b"apple", b"pear"]


async def test_two_members_share_a_topic(async_kshim, kshim_group):
    topic = await async_kshim.topic(partitions=2)
    settings = async_kshim.consumer_settings("aiokafka", kshim_group)
    async with AIOKafkaConsumer(topic, **settings):
        await async_kshim.wait_for_assignment(kshim_group)
        async with AIOKafkaConsumer(topic, **settings):
            await async_kshim.wait_for_assignment(kshim_group, members=2)


async def test_the_sync_fixture_says_that_it_would_block(kshim, kshim_topic):
    with pytest.raises(RuntimeError, match=r"await async_kshim\.produce"):
        kshim.produce(kshim_topic, ["apple"])


async def test_a_broker_stops(new_async_kshim):
    kshim = await new_async_kshim(brokers=2, properties={"default.replication.factor": "2"})
    topic = await kshim.topic()
    await kshim.stop_broker(1)
    assert await kshim.produce(topic, ["apple"]) == [(0, 0)]


async def test_a_commit_fails_once(async_kshim, kshim_topic, kshim_group):
    await async_kshim.produce(kshim_topic, ["apple"])
    settings = async_kshim.consumer_settings("aiokafka", kshim_group)
    async with AIOKafkaConsumer(kshim_topic, enable_auto_commit=False, **settings) as consumer:
        await consumer.getone()
        async with await async_kshim.fault(
            "OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", group=kshim_group, once=True
        ) as fault:
            await consumer.commit()
            assert await fault.struck() == 1
