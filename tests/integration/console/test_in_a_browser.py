"""The console as people use it: a real browser over a real cluster."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.launch.cluster import Cluster
from ottla.testing.cluster import ClusterUnderTest
from support.client.browser import opened
from support.processes.deaths import die
from support.running.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow]

PATHS = (
    "/",
    "/timeline",
    "/partitions",
    "/partitions?q=orders",
    "/partitions/orders/0",
    "/brokers/1/leave",
    "/replicas",
    "/balance",
    "/groups",
    "/elect",
    "/topics",
    "/topics/orders",
    "/topics/orders/records",
    "/topics/orders/produce",
    "/brokers",
    "/brokers/1",
    "/configs",
    "/configs/change?kind=topic&of=orders&name=retention.ms&value=9000",
    "/create-topic",
    "/reassign?how=even+out",
    "/groups/offsets",
    "/security",
    "/security?principal=User:alice&name=orders",
    "/about",
)
ROOT = Path(__file__).resolve().parents[3]
LED = ((1, 2, "orders-0"), (2, 0, "orders-2"), (0, 1, "orders-3"))
"""Who leads which partition, and who is next in the order of choice."""
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def keep_picture(page: Page, name: str) -> None:
    """The pictures of the pages are taken here, when that is asked for."""
    if os.environ.get("OTTLA_REWRITE"):
        page.screenshot(path=ROOT / "docs" / "pictures" / f"{name}.png")


def numbers_in(value: Any) -> set[int]:
    """Every number of a twin."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()))
    return set().union(*map(numbers_in, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_every_page_agrees_with_its_twin_and_fits_the_screen(
    browser: Browser, address: str, scheme: str, size: dict[str, int]
) -> None:
    with opened(browser, address, color_scheme=scheme, viewport=size) as seen:
        for path in PATHS:
            page = seen.go(path)
            twin = page.get_by_role("link", name=re.compile(r"\.json")).get_attribute("href")
            said = json.loads(page.request.get(f"{seen.base}{twin}").text())
            shown = page.locator("[data-value]").evaluate_all("all => all.map(one => +one.dataset.value)")

            assert set(shown) <= numbers_in(said), path
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} overflows"


def test_a_brokers_death_is_told_on_the_open_page_and_explained_down_to_the_candidates(
    browser: Browser, address: str, cluster: Cluster
) -> None:
    controller = wait_until(lambda: {cluster.controller} - {None}, "somebody governs").pop()
    victim, heir, partition = next(row for row in LED if row[0] != controller)
    with opened(browser, address, viewport={"width": 1000, "height": 640}) as seen:
        page = seen.go("/timeline")
        page.get_by_role("heading", name="What happened").wait_for()

        die(cluster, victim)

        death = page.locator("summary", has_text=f"broker {victim} is gone")
        death.wait_for()
        death.click()
        page.get_by_text(f"from broker {victim} to broker {heir}").wait_for()
        keep_picture(page, "console-timeline")
        page.get_by_role("link", name=partition).first.click()
        page.get_by_role("heading", name=f"{partition} is led by broker {heir}").wait_for()
        page.get_by_text(f"broker {victim}: offline, in sync").wait_for()
        page.get_by_text(f"broker {heir}: online, in sync – chosen").wait_for()
        page.get_by_text("rule: leader offline: the first replica that is online and in sync").wait_for()

        seen.go(f"/brokers/{heir}/leave").get_by_role("heading", name="Yes, but").wait_for()
        ClusterUnderTest(cluster).restore()
        page.get_by_role("heading", name=re.compile("^Yes: ")).wait_for()

        page = seen.go("/elect?q=orders")
        page.get_by_role("row", name=f"{partition} broker {heir}").get_by_text(f"broker {victim}").wait_for()
        page.get_by_role("button", name="Elect them").click()
        page.get_by_role("heading", name=re.compile("^Done: ")).wait_for()
        seen.go(f"/partitions/{partition.replace('-', '/')}")
        page.get_by_role("heading", name=f"{partition} is led by broker {victim}").wait_for()


def test_the_map_has_a_cell_for_each_replica_that_leads_to_its_page(browser: Browser, address: str) -> None:
    with opened(browser, address, viewport=WIDE) as seen:
        page = seen.go("/replicas")
        page.locator("#map.ready").wait_for()
        colors = page.evaluate(
            "() => { const c = document.getElementById('map'), d = c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data, s = new Set();"
            " for (let i = 0; i < d.length; i += 4)"
            " if (d[i + 3] === 255) s.add(`${d[i]},${d[i + 1]},${d[i + 2]}`); return [...s] }"
        )
        assert {"23,105,79", "143,199,180"} <= set(colors), "leaders and replicas in sync"

        page.locator("#map").hover(position={"x": 4, "y": 30})
        page.get_by_text(re.compile(r"-\d+ on broker 0: ")).wait_for()
        page.locator("#map").click(position={"x": 4, "y": 30})
        page.get_by_role("heading", name=re.compile("is led by broker")).wait_for()


def test_by_keyboard_one_goes_from_page_to_page_and_searches(browser: Browser, address: str) -> None:
    with opened(browser, address) as seen:
        page = seen.go("/")
        page.keyboard.press("t")
        page.get_by_role("heading", name="What happened").wait_for()
        page.wait_for_load_state()  # Keys are heard once the scripts run.
        page.keyboard.press("/")
        page.keyboard.type("orders 3")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="orders-3").click()
        page.get_by_role("heading", name="orders-3 is led by").wait_for()
        page.wait_for_load_state()
        page.keyboard.press("?")
        page.get_by_role("heading", name="Keys").wait_for()


def test_a_topic_is_made_written_to_read_and_deleted(browser: Browser, address: str) -> None:
    hostile = "<script>document.title = 'gone'</script>"
    with opened(browser, address) as seen:
        page = seen.go("/create-topic")
        page.get_by_label("Name").fill("made-here")
        page.get_by_label("Partitions", exact=True).fill("2")
        page.get_by_role("button", name="Preview").click()
        page.get_by_text("2 partitions").wait_for()
        page.get_by_role("button", name="Make it").click()
        page.get_by_role("heading", name="Done: 1 change").wait_for()

        seen.go("/configs/change?kind=topic&of=made-here&name=retention.ms&value=86400000")
        page.get_by_role("row", name="retention.ms 604800000 (the default) 86400000").wait_for()
        page.get_by_role("button", name="Change it").click()
        page.get_by_role("heading", name="Done: 1 change").wait_for()

        seen.go("/topics/made-here/produce")
        page.get_by_label("Key", exact=True).fill("k")
        page.get_by_label("Text").fill(hostile)
        page.get_by_label("Headers").fill(f"h: {hostile}")
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("button", name="Send it").click()
        page.get_by_text(re.compile("offset 0, acknowledged in")).wait_for()
        seen.go("/topics?q=made-here").get_by_text("1 topic").wait_for()

        seen.go("/topics/made-here/records?key=k&value=script")
        page.get_by_text("1 record of 1 looked at").wait_for()
        page.get_by_role("cell", name=hostile).wait_for()
        assert page.title() == "Records of made-here · Ottla"

        seen.go("/topics/made-here/delete")
        page.get_by_text("with about 1 record").wait_for()
        page.get_by_role("button", name="Delete it for ever").click()
        page.get_by_role("heading", name="Done: 1 change").wait_for()
        seen.go("/topics?q=made-here").get_by_text("0 topics").wait_for()


def test_without_the_token_there_is_no_page(browser: Browser, address: str) -> None:
    base = address.partition("/?")[0]
    context = browser.new_context()
    try:
        answer = context.new_page().goto(base)
        assert answer is not None
        assert (answer.status, "ottla console" in answer.text()) == (403, True)
    finally:
        context.close()
