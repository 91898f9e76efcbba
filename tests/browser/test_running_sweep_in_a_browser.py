"""The page `/sweep` of Dask's dashboard in a browser, while a sweep runs: it follows, by itself, and can be read."""

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from sweeplib.engine.execution.run import run_sweep
from tests.faults.sweeps import troubled_sweep, wait_until
from tests.in_process import InProcess

pytestmark = pytest.mark.slow
GAMMAS = (0.1, 0.2, 101.0, 104.0)
PREFIX = "/user/me/proxy"
SWEEP = replace(troubled_sweep(gammas=GAMMAS, seeds=40), name="<b>slow</b>", cluster=InProcess(block_size=4))
SEEN = "Bokeh.documents[0] && [...Bokeh.documents[0]._all_models.values()].some((each) => each.data?.image?.length)"
CASES = len(GAMMAS) * 40


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return a client of a cluster whose dashboard is below a path, as behind a proxy."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options, scheduler_kwargs={"http_prefix": PREFIX}) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def running(client: Client, tmp_path: Path) -> Iterator["Future[Any]"]:
    """Return the future of a sweep of a few seconds that runs beside the test."""
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(run_sweep, SWEEP, tmp_path / "slow", progress=False, client=client)


@pytest.fixture
def window(browser: Any, client: Client) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.errors = []
    page.on("console", lambda said: said.type in ("error", "warning") and page.errors.append(said.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("requestfailed", lambda request: page.errors.append(request.url))
    yield page
    page.close()


def address(client: Client) -> str:
    port = client.cluster.scheduler.http_server.port
    return f"http://127.0.0.1:{port}{PREFIX}/sweep"


def done(page: Any) -> int:
    """Return the number of cases that are done, as the page says it."""
    said = page.get_by_text(re.compile(f"of {CASES} cases")).filter(visible=True).first.inner_text()
    return int(re.search(rf"(\d+) of {CASES} cases", said).group(1))


def image(page: Any) -> Any:
    return page.evaluate("""() => {
        const [{ data }] = Bokeh.documents[0]._all_models.values().filter((each) => "image" in (each.data ?? {}));
        return { pixels: [...data.image[0]], done: [...data.done[0]], width: data.w[0] };
    }""")


def test_the_page_follows_a_sweep_without_a_reload(window: Any, client: Client, running: "Future[Any]") -> None:
    wait_until(lambda: "sweeplib-news" in client.cluster.scheduler.plugins)
    window.goto(address(client))
    window.wait_for_function(f"() => {SEEN}")
    wait_until(lambda: done(window) > 0)
    before, first = done(window), image(window)
    assert before < CASES
    wait_until(lambda: done(window) > before)
    assert image(window)["pixels"] != first["pixels"]
    assert sum(first["done"]) == before
    running.result(60)
    window.get_by_text("All cases have ended.").wait_for()
    assert done(window) == CASES and window.errors == []
    row = window.get_by_role("row").filter(has_text="ArithmeticError: a case that raises")
    assert row.inner_text().split("\t")[:3] == ["1", "troubled", "failed"]
    assert "gamma = 101, seed = 3" in row.inner_text()
    assert window.get_by_role("heading", name="<b>slow</b>").count() == 1  # a name is no markup


def test_it_can_be_used_by_keys_and_is_legible_on_a_phone(window: Any, client: Client, running: "Future[Any]") -> None:
    running.result(60)
    window.set_viewport_size({"width": 390, "height": 844})
    window.goto(address(client))
    window.wait_for_function(f"() => {SEEN}")
    assert window.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert image(window)["width"] == len(GAMMAS)
    menu = window.get_by_label("Sweep")
    menu.focus()
    assert menu.locator("option").count() == 2  # of the test before, too: another folder
    menu.press("ArrowDown")
    window.wait_for_timeout(1500)
    assert menu.input_value() == menu.locator("option").last.get_attribute("value")
    assert window.errors == []


def test_without_scripts_the_page_says_the_numbers(browser: Any, client: Client, running: "Future[Any]") -> None:
    running.result(60)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address(client))
    assert done(page) == CASES and page.get_by_text("<b>slow</b>").count() == 1
    context.close()
