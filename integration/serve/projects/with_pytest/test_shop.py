import threading

from confluent_kafka import Consumer
from shop import handle

from kshim.testing import NewRecord


def test_an_order_is_handled(kshim, kshim_topic, kshim_group):
    kshim.produce(kshim_topic, ["apple"])
    settings = kshim.consumer_settings("confluent-kafka", kshim_group)
    assert handle(settings, kshim_topic, 1) == ["APPLE"]


def test_handled_orders_are_committed(kshim, kshim_topic, kshim_group):
    kshim.produce(kshim_topic, ["apple", "pear"])
    handle(kshim.consumer_settings("confluent-kafka", kshim_group), kshim_topic, 2)
    kshim.wait_caught_up(kshim_group, kshim_topic)
    assert kshim.offsets(kshim_group) == {(kshim_topic, 0): 2}


def test_initial_topics_and_records_are_there(kshim):
    assert len(kshim.end_offsets("orders")) == 3
    assert [(record.key, record.value) for record in kshim.consume("prices")] == [
        (b"apple", b"3"),
        (b"pear", b"4"),
    ]


def test_headers_arrive(kshim, kshim_topic):
    kshim.produce(kshim_topic, [NewRecord("apple", key="k", headers={"trace": "1"})])
    (record,) = kshim.consume(kshim_topic, 1)
    assert record.headers == (("trace", b"1"),)


def test_two_members_share_a_topic(kshim, kshim_group):
    topic = kshim.topic(partitions=2)
    settings = kshim.consumer_settings("confluent-kafka", kshim_group)
    stopped = threading.Event()

    def member():
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        while not stopped.is_set():
            consumer.poll(0.05)
        consumer.close()

    members = [threading.Thread(target=member) for _ in range(2)]
    try:
        for number, each in enumerate(members, 1):
            each.start()
            kshim.wait_for_assignment(kshim_group, members=number)
    finally:
        stopped.set()
        for each in members:
            each.join()


def test_a_rebalance_has_a_cause(kshim, kshim_topic, kshim_group):
    kshim.produce(kshim_topic, ["apple"])
    handle(kshim.consumer_settings("confluent-kafka", kshim_group), kshim_topic, 1)
    rebalance = kshim.wait_for_rebalance(kshim_group, cause="a member joined")
    assert rebalance.generation == 1


def test_a_clean_server_has_the_initial_topics_only(clean_kshim):
    assert clean_kshim.topics() == ["orders", "prices"]
