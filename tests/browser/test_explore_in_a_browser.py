"""The interactive plot of a dataset of any size, in a browser: choices by mouse and keys, within a second."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sweeplib.accessor  # noqa: F401 - `ds.sweep`
from sweeplib.pictures.figures.kit.chart import along
from sweeplib.pictures.report.explore import curves
from tests.datasets import sweep_dataset

pytestmark = pytest.mark.slow
SHOWN = """() => {
    const [root] = Bokeh.documents[0].roots();
    const { renderers } = root.children.at(-1).children.at(-1);
    const { data } = renderers.at(-1).data_source;
    return ["x", "y", "low", "high", "name"].map((name) => [...data[name]]);
}"""


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=8)


@pytest.fixture
def window(browser: Any, ds: xr.Dataset) -> Iterator[Any]:
    explored = ds.sweep.explore(show=False)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.errors = []
    page.on("console", lambda said: said.type in ("error", "warning") and page.errors.append(said.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("requestfailed", lambda request: page.errors.append(request.url))
    page.goto(explored.address)
    page.get_by_label("Quantity").wait_for()
    yield page
    page.close()
    explored.close()


def changed(page: Any, before: Any) -> float:
    """Wait until other curves are shown; return the seconds that it took."""
    started = time.monotonic()
    while page.evaluate(SHOWN) == before:
        assert time.monotonic() - started < 10
        page.wait_for_timeout(20)
    return time.monotonic() - started


def test_an_axis_is_chosen_by_keys_and_the_curves_are_those_of_the_data(window: Any, ds: xr.Dataset) -> None:
    quantity, risk = window.get_by_label("Quantity"), "Population risk R"
    other = next(label for label in quantity.locator("option").all_inner_texts() if label != risk)
    for label in (other, risk):  # that which is shown first need not be the risk
        before = window.evaluate(SHOWN)
        quantity.select_option(label=label)
        changed(window, before)
    over = window.get_by_label("Over")
    before = window.evaluate(SHOWN)
    over.focus()
    over.press("ArrowDown")
    assert changed(window, before) < 3.0
    x = over.input_value()
    at = {dim: ds.sizes[dim] // 2 for dim in ds.risk.dims if dim not in ("seed", along(ds, x), "dynamics")}
    expected, _ = curves(ds, "risk", x, "dynamics", at)
    *numbers, names = window.evaluate(SHOWN)
    assert names == [name for name, curve in expected.of.items() for _ in curve.x]
    for name, shown in zip(("x", "y", "low", "high"), numbers, strict=True):
        values = [value for curve in expected.of.values() for value in getattr(curve, name)]
        np.testing.assert_array_equal(np.array(shown, float), np.array(values, float))
    assert window.errors == []


def test_it_is_accessible(window: Any) -> None:
    """By axe-core, as the report: names, roles, landmarks, contrast."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    found = axe.run(window, options=rules)
    assert not found.response["violations"], found.generate_report()


def test_it_fits_a_phone(window: Any) -> None:
    window.set_viewport_size({"width": 390, "height": 844})
    window.wait_for_timeout(500)
    assert window.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert window.errors == []


def test_long_names_do_not_scroll_sideways_on_a_telephone(browser: Any, ds: xr.Dataset) -> None:
    names = ["ode", "ode-corrected-to-first-order", "sgd", "sgd_chain", "nonlinear_dynamics"]
    explored = ds.isel(dynamics=[0, 1, 2, 0, 1]).assign_coords(dynamics=names).sweep.explore(show=False)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(explored.address)
    page.get_by_label("Quantity").wait_for()
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()
    explored.close()
