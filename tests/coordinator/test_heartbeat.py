from tests.coordinator.history import History


def test_smoke():
    h = History()
    a, b = h.stable(2)
    assert a.heartbeat() == 0
    assert b.heartbeat() == 0
    h.sleep(30_000)
    assert a.heartbeat() == 25
    print(h.rebalances)
    print(h.records())
