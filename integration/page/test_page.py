"""The page in a real browser: what it shows, how soon, and that everybody can use it.

KSHIM_SCREENSHOTS=docs/pages draws the pictures of docs/http.md anew.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from integration.page.look import NARROW, PATIENCE_S, WIDE, Look
from integration.page.world import World, assign, rebalance
from integration.support.awaiting import wait_until
from integration.support.server import Server, run_to_end
from kshim.testing.records import NewRecord

SOON_S = 3.0
"""After so long a page shows what has changed, on a busy machine too; tests/http holds the server to 1 s."""
CHECKOUT = "/page/groups/checkout"
ORDERS = "/page/topics/orders"
PAGES = ("/", CHECKOUT, "/page/topics", ORDERS, "/page/nothing", "/page/connections")


def lag(look: Look, group_id: str) -> str:
    return look.text(f"tr[data-group={group_id}] [data-name=lag]").replace("\u202f", "")


def test_groups_are_listed_and_their_lag_is_live(look: Look, world: World) -> None:
    look.open("/")
    names = look.texts("#groups tbody th")
    assert [name for name in names if name in ("billing", "checkout")] == ["billing", "checkout"]
    assert look.text("tr[data-group=checkout] .state") == "Stable"
    before = int(lag(look, "checkout"))
    world.checkout[0].commit("orders", {0: 160})
    began_s = time.monotonic()
    wait_until(lambda: lag(look, "checkout") == str(before - 10), PATIENCE_S, "the lag is shown")
    assert time.monotonic() - began_s < SOON_S
    world.produce("payments", 7)
    began_s = time.monotonic()
    wait_until(lambda: int(lag(look, "billing")) >= 7, PATIENCE_S, "the lag is shown")
    assert time.monotonic() - began_s < SOON_S


def test_groups_are_listed_with_their_last_rebalance_and_can_be_sorted(look: Look, world: World) -> None:
    look.open("/")
    last = "tr[data-group=checkout] [data-name=last]"
    assert look.text(f"{last} span") == "a member left"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", look.text(f"{last} time"))
    (shown,) = world.server.why("checkout")["rebalances"][-1:]
    assert look.find(last).get_attribute("data-order") == str(shown["ended_ms"])

    def order() -> list[str]:
        return [name for name in look.texts("#groups tbody th") if name in ("billing", "checkout")]

    assert order() == ["billing", "checkout"]
    look.click("#groups thead th:nth-child(4) button")
    assert order() == sorted(order(), key=lambda name: -int(lag(look, name)))
    assert look.find("#groups thead th:nth-child(4)").get_attribute("aria-sort") == "descending"
    look.click("#groups thead th:nth-child(4) button")
    assert order() == sorted(order(), key=lambda name: int(lag(look, name)))
    world.produce("payments", 5_000)
    wait_until(lambda: order() == ["checkout", "billing"], PATIENCE_S, "the order follows the lag")
    look.click("#groups thead th:nth-child(1) button")
    assert order() == ["billing", "checkout"]


def test_a_last_rebalance_is_shown_as_it_ends(look: Look, world: World) -> None:
    member = world.consumer("soon", "soon-1")
    rebalance([member], "orders", 6)
    look.open("/")
    member.leave()
    last = "tr[data-group=soon] [data-name=last] span"
    wait_until(lambda: look.text(last) == "a member left", PATIENCE_S, "the last rebalance")
    world.delete_group("soon")


def test_a_search_that_finds_nothing_says_so(look: Look) -> None:
    look.open("/")
    look.press("/", *"nope")
    assert look.texts("#groups tbody tr:not([hidden])") == []
    assert look.text("#nothing") == "Nothing found: no groups with “nope”."
    look.press(*[Keys.BACKSPACE] * 4)
    assert look.text("#nothing") == ""


def test_groups_come_and_go(look: Look, world: World) -> None:
    look.open("/")
    world.consumer("a-new-one", "x").commit("orders", {0: 1})
    first = "#groups tbody tr a"
    wait_until(lambda: look.text(first) == "a-new-one", PATIENCE_S, "the new group comes first")
    world.delete_group("a-new-one")
    wait_until(lambda: look.text(first) == "billing", PATIENCE_S, "the group has gone")


def test_names_that_clients_chose_are_text(look: Look, world: World) -> None:
    name = "</script><img src=x onerror=document.title='bad'>\"'&%2F/ü"
    world.consumer(name, "<b>x</b>").commit("orders", {0: 1})
    look.open("/")
    assert look.texts("#groups img, #groups b") == []
    look.driver.find_element(By.LINK_TEXT, name).click()
    wait_until(lambda: look.text("h1 .id") == name, PATIENCE_S, "the group's own page")
    look.wait_live()
    assert look.driver.title == f"{name} · kshim"
    look.open("/")  # a page of a group that is gone would ask for it in vain
    world.delete_group(name)


def test_a_rebalance_is_drawn_and_explained(look: Look) -> None:
    look.open(CHECKOUT)
    assert len(look.texts("svg .band")) == 4
    assert look.texts(".names .name") == ["checkout-1", "checkout-2", "checkout-3"]
    assert len(look.texts("svg .gone")) == 1
    assert {"checkout-1 has orders-0", "checkout-2 has orders-1"} <= set(look.texts("svg title"))
    assert len(look.texts("svg .waits")) == 8
    assert "rebalanced because a member left: checkout-2" in look.text("article .story")
    look.click("article summary")
    assert look.texts("article details[open] tbody th") != []


def test_the_members_and_the_offsets_stand_above_the_history(look: Look) -> None:
    look.open(CHECKOUT)
    headings = look.texts("h2")
    assert headings[:5] == ["Now", "Members", "Offsets", "Timeline", "Rebalances"]


def test_the_page_and_the_command_line_say_the_same(look: Look, world: World) -> None:
    members = [world.consumer("same", f"same-{number}") for number in (1, 2)]
    rebalance(members, "orders", 6)
    members[1].leave()  # and stays connected
    rebalance(members[:1], "orders", 6)
    look.open("/page/groups/same")
    stayed = "same-2 stayed connected: its program probably exceeded max.poll.interval.ms, or unsubscribed."
    wait_until(lambda: stayed in look.texts(".story li"), PATIENCE_S, "what the connection says")
    printed = printed_by(world.server, "why", "same")
    for sentence in look.texts("article:first-of-type .story li"):
        assert f"  {sentence}\n" in printed
    assert f"  {look.text('article .helps')}\n" in printed
    began = look.text("article .when time")
    assert f", {began.split()[1]}\n" in printed
    incidents = look.texts("h2 + .story li")
    assert any("left, but is still connected" in each for each in incidents)
    for incident in incidents:
        _, at, text = incident.split(maxsplit=2)
        assert f"  {at}  {text}\n" in printed


def printed_by(server: Server, *command: str) -> str:
    done = run_to_end(*command, "--data-dir", str(server.data_dir), cwd=server.data_dir.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_who_waits_for_whom_is_shown_while_it_lasts(look: Look, world: World) -> None:
    look.open(CHECKOUT)
    assert look.text(".now p") == "Nobody waits."
    look.click("article summary")
    fourth = world.consumer("checkout", "checkout-4", "kafka-python 3.0.12")
    fourth.send_join("orders")
    began_s = time.monotonic()
    wait_until(lambda: "waits for" in look.text(".now p"), PATIENCE_S, "the wait is shown")
    assert time.monotonic() - began_s < SOON_S
    chips = {kind: look.texts(f".{kind}") for kind in ("waiting", "awaited")}
    assert chips == {"waiting": ["checkout-4"], "awaited": ["checkout-1", "checkout-3"]}
    assert look.texts("article details[open]") != []
    first, _, third = world.checkout
    for member in (first, third):
        wait_until(member.is_told, PATIENCE_S, "the member is told")
        member.send_join("orders")
    leaders = [member for member in (first, third, fourth) if member.joined()]
    wait_until(lambda: "to assign the partitions" in look.text(".now p"), PATIENCE_S, "the leader is awaited")
    assign(leaders[0], [first, third, fourth], "orders", 6)
    wait_until(lambda: look.text(".now p") == "Nobody waits.", PATIENCE_S, "it is over")
    wait_until(lambda: len(look.texts("svg .band")) == 5, PATIENCE_S, "it is drawn")
    assert look.texts("article details[open]") != []
    fourth.leave()
    rebalance([first, third], "orders", 6)


def test_topics_and_connections(look: Look, world: World) -> None:
    look.open("/page/topics")
    records = "tr:has(a[href='/page/topics/orders']) td[data-label=Records]"
    before = int(look.text(records).replace("\u202f", ""))
    world.produce("orders", 1, 5)
    wait_until(
        lambda: look.text(records).replace("\u202f", "") == str(before + 1), PATIENCE_S, "it is fetched again"
    )
    assert not look.find("#internal table").is_displayed()
    look.click("#internal summary")
    assert look.find("#internal table").is_displayed()
    assert "__consumer_offsets" in look.texts("#internal tbody th")
    look.open("/page/connections")
    assert {"checkout-1", "billing-1"} <= set(look.texts("tbody td[data-label='Client id']"))
    assert "apache-kafka-java 4.2.0" in look.text("tbody")
    assert "librdkafka 2.16.1" in look.text("tbody")


def test_the_records_of_a_topic(look: Look, world: World) -> None:
    world.kafka.produce(
        "orders", [NewRecord(b'{"item": "tea"}', key=b"k", partition=2), NewRecord(b"\x00\xff", partition=2)]
    )
    look.open(ORDERS)
    assert look.text("h1") == "orders"
    assert "checkout" in look.texts("a[href='/page/groups/checkout']")
    assert "retention.ms" in look.texts("#configs tbody th")
    partition = look.find("[name=partition]")
    partition.clear()
    partition.send_keys("2", Keys.ENTER)
    wait_until(lambda: "partition=2" in look.driver.current_url, PATIENCE_S, "the other partition")
    look.wait_live()
    assert look.texts(".records td[data-label=Value]")[-2:] == ['{\n  "item": "tea"\n}', "00ff"]
    assert look.texts(".records td[data-label=Key]")[-2:] == ["k", "null"]
    first = look.texts(".records tbody th")[0]
    look.find(".ways a").click()
    wait_until(lambda: look.texts(".records tbody th")[:1] not in ([], [first]), PATIENCE_S, "earlier ones")
    look.open(f"{ORDERS}?offset=0&as=hex")
    assert set(look.texts(".records td[data-label=Value]")) == {"78"}
    look.open(f"{ORDERS}?time=2999-01-01")
    assert "Nothing found: partition 0 has the offsets 0 to" in look.text("main")


def test_a_stale_link_is_a_page(look: Look) -> None:
    look.open("/page/groups/long-gone")
    assert look.text("h1") == "Not found"
    assert look.text("main p") == "No group 'long-gone'."
    look.await_error("404")
    look.click("nav a")
    wait_until(lambda: look.text("h1") == "Groups", PATIENCE_S, "the list of groups")


def test_offsets_are_reset_after_it_was_shown_what_would_change(
    look: Look, new_server: Callable[..., Server]
) -> None:
    server = new_server("--http", "127.0.0.1:0", "--set", "http.steering.enable=true").start()
    world = World(server)
    world.consumer("replayed", "x").commit("orders", {0: 150, 1: 20})
    steered = Look(look.driver, world.http)
    steered.open("/page/groups/replayed")
    assert not steered.find("[name=reset]").is_enabled()
    steered.click("[name=try]")
    changes = "Would change orders-0: 150 → 0, orders-1: 20 → 0."
    wait_until(lambda: steered.text("#reset-says") == changes, PATIENCE_S, "what would change")
    steered.find("[name=to]").send_keys("so many")
    assert not steered.find("[name=reset]").is_enabled()
    steered.find("[name=value]").send_keys("-10", Keys.ENTER)
    changes = "Would change orders-0: 150 → 140, orders-1: 20 → 10."
    wait_until(lambda: steered.text("#reset-says") == changes, PATIENCE_S, "what would change")
    committed = "td[data-label=Committed]"
    assert steered.texts(committed) == ["150", "20"]
    steered.click("[name=reset]")
    wait_until(lambda: steered.text("#reset-says").startswith("Done: 2"), PATIENCE_S, "the reset")
    wait_until(lambda: steered.texts(committed) == ["140", "10"], PATIENCE_S, "the new offsets")
    steered.check()
    steered.driver.get("about:blank")
    world.close()
    server.stop()


def test_the_keyboard_is_enough(look: Look) -> None:
    look.open("/")
    look.press(Keys.TAB)
    assert look.focused() == "A To the content"
    look.press(Keys.ENTER, "/")
    assert look.focused() == "INPUT search"
    look.press(*"check")
    assert look.texts("#groups tbody tr:not([hidden]) th") == ["checkout"]
    look.press(Keys.TAB)
    assert look.focused() == "BUTTON Group"
    look.press(Keys.ENTER)
    assert look.find("#groups thead th").get_attribute("aria-sort") == "ascending"
    look.press("/", Keys.ENTER)
    wait_until(lambda: look.text("h1 .id") == "checkout", PATIENCE_S, "the group's page")
    look.wait_live()
    look.run("document.querySelector('.scroll').focus()")
    look.press(Keys.TAB)
    assert "generation" in look.focused()
    look.press(Keys.ENTER)
    assert "#r" in look.driver.current_url
    look.show(NARROW, "light")
    look.open(CHECKOUT)
    look.run("const s = document.querySelector('.scroll'); s.scrollLeft = 0; s.focus()")
    look.press(Keys.ARROW_RIGHT)
    scrolled = "return document.querySelector('.scroll').scrollLeft"
    wait_until(lambda: look.run(scrolled) > 0, PATIENCE_S, "it scrolls")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everybody_can_use_it(look: Look, width: int, scheme: str) -> None:
    look.show(width, scheme)
    for page in PAGES:
        look.open(page)
        look.forget_errors()  # a page that is not there is an error to the browser
        look.run("for (const each of document.querySelectorAll('article details')) each.open = true")
        assert look.violations() == [], page
        assert look.overflow() <= 0, page


def test_the_page_says_that_a_server_has_gone_and_goes_on_when_it_is_back(
    look: Look, new_server: Callable[..., Server]
) -> None:
    server = new_server("--http", f"127.0.0.1:{free_port()}").start()
    world = Look(look.driver, f"http://{http_of(server)}")
    world.open("/")
    server.kill()
    wait_until(lambda: "does not answer" in world.text("#live"), PATIENCE_S, "the page says so")
    server.restart()
    wait_until(lambda: world.text("#live") == "live", PATIENCE_S, "the page is live again")
    world.driver.get("about:blank")
    server.stop()
    look.forget_errors()
    world.driver.get_log("performance")


def test_a_browser_keeps_the_token(look: Look, new_server: Callable[..., Server]) -> None:
    server = new_server("--http", "127.0.0.1:0", "--set", "http.token=hocus-pocus").start()
    guarded = Look(look.driver, f"http://{http_of(server)}")
    guarded.driver.get(guarded.base)
    assert "expected the token" in guarded.text("body")
    guarded.await_error("401")
    guarded.open("/?token=hocus-pocus")
    assert guarded.driver.current_url == f"{guarded.base}/"
    guarded.open("/page/topics")
    assert guarded.text("h1") == "Topics"
    guarded.check()
    guarded.driver.get("about:blank")


def http_of(server: Server) -> str:
    wait_until(lambda: len(server.stdout) > 1, PATIENCE_S, "the line that names the page")
    return server.stdout[1].split()[2]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("name", "page", "width", "scheme"),
    [
        ("groups", "/", WIDE, "light"),
        ("groups-dark", "/", WIDE, "dark"),
        ("groups-narrow", "/", NARROW, "light"),
        ("group", CHECKOUT, WIDE, "light"),
        ("group-dark", CHECKOUT, WIDE, "dark"),
        ("group-narrow", CHECKOUT, NARROW, "dark"),
        ("topic", ORDERS, WIDE, "light"),
        ("topic-narrow", ORDERS, NARROW, "light"),
    ],
)
def test_the_pictures(look: Look, tmp_path: Path, name: str, page: str, width: int, scheme: str) -> None:
    look.show(width, scheme)
    look.open(page)
    picture = Path(os.environ.get("KSHIM_SCREENSHOTS") or tmp_path) / f"{name}.png"
    look.draw(picture)
    assert picture.stat().st_size > 5_000
