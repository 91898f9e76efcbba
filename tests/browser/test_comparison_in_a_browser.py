"""The page that compares two sweeps, in a browser: no errors, legible by everyone and on a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sweeplib.commands.cli import app
from tests.compared import finished_pair

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folders = finished_pair(tmp_path_factory.mktemp("results"))
    page = folders[0].parent / "comparison.html"
    found = CliRunner().invoke(app, ["report", *map(str, folders), "--output", str(page)])
    assert found.exit_code == 0, found.output
    return page


@pytest.fixture
def window(browser: Any, comparison: Path) -> Iterator[Any]:
    """The page in a window; what it requests and reports is in its lists `requests` and `errors`."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.requests, page.errors = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("console", lambda message: message.type == "error" and page.errors.append(message.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(comparison.as_uri())
    yield page
    page.close()


def test_it_opens_with_no_error_and_asks_for_nothing_else(window: Any, comparison: Path) -> None:
    assert not window.errors
    assert {url for url in window.requests if not url.startswith("data:")} == {comparison.as_uri()}
    assert window.locator("img").count() >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(window: Any, scheme: str) -> None:
    """axe-core finds no violation of WCAG 2.1 A and AA, with all that is folded opened."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    window.emulate_media(color_scheme=scheme)
    window.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    found = axe.run(window, options=rules)
    assert not found.response["violations"], found.generate_report()


def test_nothing_is_wider_than_a_phone(window: Any) -> None:
    window.set_viewport_size({"width": 390, "height": 844})
    assert window.evaluate("document.documentElement.scrollWidth") <= 390
