"""Frames of a cloud in the report: moved by a slider, played by a button, as readers see and hear them."""

import numpy as np
import pytest

from tests.browser.opened import Opened
from tests.datasets import units_dataset

pytestmark = pytest.mark.slow
NAME = "unit_clouds"
FRAME = 500
"""The milliseconds that one of so few frames is shown."""


@pytest.fixture
def moving(browser, report):
    """Return the report for readers who did not ask for less motion."""
    page = Opened(browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="no-preference"), report)
    yield page
    page.page.close()


def slider(page):
    return page.plot(NAME).get_by_role("slider", name="ODE time")


def test_a_frame_has_the_units_of_its_time(opened):
    ds = units_dataset(times=5)
    for frame in (0, 4):
        slider(opened).fill(str(frame))
        drawn = opened.drawn(NAME)
        expected = ds.overlap_M.isel(time=frame).values.ravel()
        assert len(drawn["x"]) == expected.size
        np.testing.assert_allclose(np.sort(drawn["x"]), np.sort(expected), rtol=1e-8)
        norms = ds.self_overlap.isel(time=frame).values.ravel() ** 0.5
        np.testing.assert_allclose(np.sort(drawn["y"]), np.sort(norms), rtol=1e-8)
        assert opened.drawn(NAME, "lines")["xs"] == []
    assert opened.troubles == []


def test_the_slider_moves_by_keys_and_says_the_time(opened):
    slider(opened).focus()
    for key, frame in (("ArrowRight", 1), ("End", 4), ("ArrowLeft", 3), ("Home", 0)):
        opened.page.keyboard.press(key)
        assert slider(opened).input_value() == str(frame)
        assert slider(opened).get_attribute("aria-valuetext") == str(frame)
        assert opened.plot(NAME).locator("output").inner_text() == str(frame)


def test_frames_share_their_axes(opened):
    found = """(name) => {
        const { ready } = document.querySelector(`section.plot[data-name=${name}]`).dataset;
        const { x_range, y_range } = [...Bokeh.index.roots].find((each) => each.model.id === ready).model;
        return [x_range, y_range].map(({ start, end }) => [start, end]);
    }"""
    first = opened.page.evaluate(found, NAME)
    slider(opened).fill("4")
    assert opened.page.evaluate(found, NAME) == first
    overlaps = units_dataset(times=5).overlap_M
    assert first[0][0] < overlaps.min() and overlaps.max() < first[0][1]


def test_the_frames_are_played_by_keyboard_to_the_last_and_again(moving):
    """By a clock that the test advances: on a busy machine frames would go on while the browser is asked for them."""
    clock = moving.page.clock
    clock.install(time=0)
    clock.pause_at(1000)
    button = moving.plot(NAME).get_by_role("button", name="Play: Norm")
    button.focus()
    moving.page.keyboard.press("Enter")
    assert moving.plot(NAME).get_by_role("button", name="Pause: Norm").is_visible()
    clock.run_for(2 * FRAME)
    assert slider(moving).input_value() == "2"
    moving.page.keyboard.press("Space")
    assert button.is_visible()
    clock.run_for(2 * FRAME)
    assert slider(moving).input_value() == "2", "it stands still"
    assert f"{NAME}=time" in moving.page.url, "the address has the frame"
    moving.page.keyboard.press("Space")
    clock.run_for(2 * FRAME)
    assert slider(moving).input_value() == "4" and button.is_visible()
    moving.page.keyboard.press("Space")
    clock.run_for(FRAME)
    assert slider(moving).input_value() == "1", "from the first frame again"
    assert moving.drawn(NAME)["x"] and moving.troubles == []


def test_the_address_opens_at_a_frame(browser, report):
    page = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), report, f"{NAME}=time%3D3")
    assert slider(page).input_value() == "3" and page.plot(NAME).locator("output").inner_text() == "3"
    page.page.close()


def test_nothing_plays_where_less_motion_is_asked_for_or_in_print(opened, moving):
    from playwright.sync_api import expect

    assert opened.plot(NAME).locator("button.play").is_hidden()
    moving.plot(NAME).locator("button.play").click()
    moving.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert moving.plot(NAME).locator("button.play").inner_text() == "Play"
    moving.plot(NAME).locator("button.play").click()
    moving.page.emulate_media(reduced_motion="reduce")
    expect(moving.plot(NAME).locator("button.play")).to_have_text("Play")
    moving.page.emulate_media(media="print")
    assert slider(moving).count() == 0 or slider(moving).is_hidden()
    assert moving.plot(NAME).locator("output").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_player_is_accessible(moving, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    moving.page.emulate_media(color_scheme=scheme)
    slider(moving).fill("2")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    found = axe.run(moving.page, options=rules)
    assert not found.response["violations"], found.generate_report()
