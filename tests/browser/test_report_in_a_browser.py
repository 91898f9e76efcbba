"""The report as readers see it: opened from a file, in Chromium."""

import math
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from sweeplib.networks.theory import noise_corrected_exit_time
from tests.browser.opened import Opened

pytestmark = pytest.mark.slow


def over_d(exits):
    """Mean exit steps in the units of their plot, those of its picture."""
    return exits.exit_steps_mean / exits.d


def test_it_opens_with_no_error_and_asks_for_nothing_else(opened, report):
    assert opened.troubles + opened.warnings == []
    assert [url for url in opened.requests if not url.startswith(("data:", "blob:"))] == [report.as_uri()]


def test_every_plot_draws_its_points(opened, exits):
    for name in ("exit_steps", "optimal_learning_rates", "risk_bands", "regimes"):
        assert opened.drawn(name)["x"], name
        assert opened.plot(name).locator("canvas").count() > 0
    shown = exits.exit_steps_mean.sel(Delta=0.0).notnull().sum().item()
    assert len(opened.drawn("exit_steps")["x"]) == shown


def test_hovering_a_point_shows_parameters_statistics_and_runs(opened, exits):
    drawn = opened.drawn("exit_steps")
    at = exits.sel(dynamics="sgd_chain", d=3000, Delta=0.0).isel(gamma_ratio=3, threshold=0)
    mean, error = at.exit_steps_mean.item() / 3000, at.exit_steps_mean_error.item() / 3000
    row = next(row for row, y in enumerate(drawn["y"]) if math.isclose(y, mean, rel_tol=1e-8))
    text = opened.hover("exit_steps", row)
    expected = (
        "Dynamics: SGD (overlap chain)",
        "Input dimension d: 3000",
        "Label-noise variance Δ: 0",
        f"Learning rate γ: {at.gamma.item():.5g}",
        f"Median exit steps: {at.exit_steps_median.item():.5g}",
        "Runs: 8 ok",
        "Runs used: 8",
    )
    for words in expected:
        assert words in text
    found = re.search(r"Mean exit steps ⟨ ν ext ⟩ / d: (\S+) ± (\S+)", text)
    assert float(found[1]) == pytest.approx(mean, abs=0.1 * error)
    assert float(found[2]) == pytest.approx(error, rel=0.05)


def test_curves_have_a_band_and_theory_a_line(opened, ds):
    bands, lines = opened.drawn("risk_bands", "bands"), opened.drawn("risk_bands", "lines")
    assert len(bands["xs"]) == len(lines["xs"]) > 0
    times = len(lines["xs"][0])
    assert len(bands["xs"][0]) == 2 * times
    theory = opened.drawn("exit_steps", "theory")
    gamma = ds.gamma.sel(Delta=0.0).isel(gamma_ratio=0).item()
    expected = [noise_corrected_exit_time(gamma, 1, d, 0.0, 0.01) / gamma for d in ds.d.values]
    assert all(any(ys[0] == pytest.approx(steps, rel=1e-6) for ys in theory["ys"]) for steps in expected)


def test_a_curve_tells_of_the_point_under_the_mouse(opened):
    text = opened.hover("risk_bands", 10)
    assert "Median population risk: " in text
    assert "10 % to 90 % of the seeds: [" in text
    assert "ODE time t: " in text


def test_a_menu_filters_what_is_drawn_tabulated_and_said(opened, exits):
    plot = opened.plot("exit_steps")
    before = opened.drawn("exit_steps")
    opened.menu("exit_steps", "Delta").select_option("1")
    after = opened.drawn("exit_steps")
    assert after["y"] != before["y"]
    expected = over_d(exits).sel(Delta=1.0).values
    assert sorted(after["y"]) == pytest.approx(sorted(expected[np.isfinite(expected)]))
    assert plot.locator(".shown").inner_text().startswith(f"{len(after['y'])} of ")
    opened.menu("exit_steps", "Delta").select_option("all")
    assert len(opened.drawn("exit_steps")["y"]) == exits.exit_steps_mean.notnull().sum()


def test_a_box_of_the_legend_takes_points_and_lines_away(opened):
    plot = opened.plot("exit_steps")
    colours = set(opened.drawn("exit_steps")["color"])
    plot.get_by_role("group", name="Input dimension d").get_by_label("300", exact=True).uncheck()
    assert len(set(opened.drawn("exit_steps")["color"])) == len(colours) - 1
    assert set(opened.drawn("exit_steps", "lines")["color"]) == set(opened.drawn("exit_steps")["color"])
    for box in plot.get_by_role("group", name="Dynamics").get_by_role("checkbox").all():
        box.uncheck()
    assert opened.drawn("exit_steps")["x"] == []
    assert opened.troubles == []


def test_the_map_is_filtered_by_class(opened):
    plot = opened.plot("regimes")
    plot.get_by_label("no_ode").uncheck()
    assert len(set(opened.drawn("regimes")["color"])) == 1
    assert "Regime: plateau" in opened.hover("regimes", 0)


def test_csv_of_a_plot_has_the_rows_that_are_shown(opened):
    plot = opened.plot("exit_steps")
    opened.menu("exit_steps", "Delta").select_option("1")
    plot.get_by_role("group", name="Dynamics").get_by_label("ODE").uncheck()
    rows, drawn = opened.downloaded(plot), opened.drawn("exit_steps")
    assert [float(row["scaled_exit_steps_mean"]) for row in rows] == drawn["y"]
    assert {row["dynamics"] for row in rows} == {"sgd", "sgd_chain"}
    assert {float(row["Delta"]) for row in rows} == {1.0}
    assert {row["runs"] for row in rows} == {"8"}


@pytest.mark.parametrize("name", ["exit_steps", "optimal_learning_rates", "risk_bands", "regimes", "unit_clouds"])
def test_csv_of_a_plot_reproduces_it_point_by_point(opened, name):
    """Its rows are, in their order, what is drawn: places, ends of bars, sides of cells, and what has the colour."""
    rows, drawn, spec = opened.downloaded(opened.plot(name)), opened.drawn(name), opened.spec(name)

    def column(key):
        return np.array([float(row[key] or "nan") for row in rows])

    np.testing.assert_array_equal(column(spec["x"]), drawn["x"])
    np.testing.assert_array_equal(column(spec["y"]), drawn["y"])
    [hue] = {name for name, looks in spec["looks"].items() if any("color" in look for look in looks)} or {None}
    colours = {}
    for row, colour in zip(rows, drawn["color"], strict=True):
        colours.setdefault(row[hue] if hue else None, set()).add(colour)
    assert all(len(each) == 1 for each in colours.values())
    assert len(set().union(*colours.values())) == len(colours)
    if spec["kind"] == "map":
        for axis, (low, high) in {"x": ("left", "right"), "y": ("bottom", "top")}.items():
            edges = np.unique([*drawn[low], *drawn[high]])
            inside = (np.array(drawn[low]) < drawn[axis]) & (drawn[axis] < np.array(drawn[high]))
            assert inside.all()
            np.testing.assert_array_equal(edges, spec["cells"][axis])
        return
    middle, error = column(spec["value"]), column(spec["error"]) if spec["error"] else 0.0
    ends = [column(end) for end in spec["interval"]] if spec["interval"] else [middle - error, middle + error]
    bound = np.array([row[spec["bound"]] == "true" if spec["bound"] else False for row in rows])
    for end, shown, side in zip(ends, ("low", "high"), ("below", "above"), strict=True):
        known = np.where(np.isnan(end) & (spec["kind"] != "curves") & bool(spec["interval"]), middle, end)
        known = np.where(bound & (spec["side"] == side), middle, known)  # there an arrow stands
        beyond = np.isinf(known) | (spec["log"]["y"] & (known <= 0.0))
        heights = np.array(drawn[shown], float)
        assert np.isfinite(heights[beyond]).all()
        np.testing.assert_allclose(heights[~beyond], known[~beyond], rtol=1e-12)


def test_csv_of_an_analysis_has_every_point(opened, exits):
    section = opened.page.locator("section.table", has_text="exit_times")
    rows = opened.downloaded(section)
    assert len(rows) == exits.exit_steps_mean.notnull().sum()
    one = next(row for row in rows if row["dynamics"] == "ode" and float(row["d"]) == 3000)
    at = exits.sel(dynamics="ode", d=3000, Delta=float(one["Delta"]))
    at = at.isel(gamma_ratio=int(np.argmin(np.abs(at.gamma_ratio.values - float(one["gamma_ratio"])))))
    assert float(one["exit_steps_median"]) == pytest.approx(at.exit_steps_median.item())


def test_the_table_beside_a_plot_has_the_same_points(opened):
    plot = opened.plot("optimal_learning_rates")
    plot.get_by_text("Table of the points shown").click()
    rows = plot.get_by_role("row")
    rows.nth(1).wait_for()
    assert rows.count() == 1 + len(opened.drawn("optimal_learning_rates")["x"])
    assert plot.get_by_role("columnheader", name="Input dimension d").count() == 1


def test_the_result_comes_first(opened):
    names = [heading.inner_text() for heading in opened.page.locator("h2").all()]
    assert names[:2] == ["Results", "Figures"]
    assert names.index("What ran") > names.index("Data")
    assert opened.page.get_by_text("The optimal learning rate of SGD is 0.095").first.is_visible()


def test_an_axis_changed_again_before_it_is_drawn_leaves_one_plot(opened):
    plot = opened.plot("exit_steps")
    elements = plot.locator(".canvas > *").count()
    box = "section.plot[data-name=exit_steps] input[data-log=y]"
    opened.page.evaluate(f"for (let i = 0; i < 3; i++) document.querySelector('{box}').click()")
    opened.page.wait_for_timeout(1500)
    assert plot.locator(".canvas > *").count() == elements
    assert opened.drawn("exit_steps")["x"]
    assert opened.troubles == []


def test_an_axis_is_logarithmic_on_request(opened):
    plot = opened.plot("exit_steps")
    before = opened.drawn("exit_steps")
    kind = """() => { const { ready } = document.querySelector("section.plot[data-name=exit_steps]").dataset;
        const [plot] = Bokeh.documents.map((each) => each.roots()[0]).filter((each) => each?.id === ready);
        return [plot.x_scale.type, plot.y_scale.type]; }"""
    elements = plot.locator(".canvas > *").count()
    box = plot.get_by_role("group", name="Logarithmic").get_by_label("vertical axis")
    was = opened.page.evaluate(kind)
    box.set_checked(not box.is_checked())
    opened.page.wait_for_function(f"JSON.stringify(({kind})()) !== JSON.stringify({was})")
    assert opened.page.evaluate(kind)[0] == was[0]
    assert plot.locator(".canvas > *").count() == elements
    after = opened.drawn("exit_steps")
    logarithmic, linear = (after, before) if box.is_checked() else (before, after)
    ends, places = (np.array(each.pop("low"), float) for each in (linear, logarithmic))
    np.testing.assert_array_equal(places[ends > 0.0], ends[ends > 0.0])
    below = places[ends <= 0.0]  # bars that reach zero go below all that is drawn
    assert ((below > 0.0) & (below < np.nanmin(ends[ends > 0.0]))).all() and (below < min(linear["y"])).all()
    assert logarithmic == linear
    opened.menu("exit_steps", "Delta").select_option("1")
    assert opened.drawn("exit_steps")["y"] != linear["y"]
    assert opened.troubles == []


def test_the_address_keeps_what_is_chosen(browser, report, opened):
    plot = opened.plot("exit_steps")
    opened.menu("exit_steps", "Delta").select_option("1")
    plot.get_by_role("group", name="Dynamics").get_by_label("ODE").uncheck()
    plot.get_by_role("group", name="Logarithmic").get_by_label("horizontal axis").check()
    address = opened.page.url
    assert address.startswith(report.as_uri() + "#exit_steps=")
    again = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), report, address.partition("#")[2])
    assert again.drawn("exit_steps")["y"] == opened.drawn("exit_steps")["y"]
    assert not again.plot("exit_steps").get_by_role("group", name="Dynamics").get_by_label("ODE").is_checked()
    assert (
        again.plot("exit_steps").get_by_role("group", name="Logarithmic").get_by_label("horizontal axis").is_checked()
    )
    again.page.get_by_role("link", name="Provenance").click()
    assert again.page.url == address
    assert again.page.evaluate("document.activeElement.id") == "provenance"
    opened.reset()
    opened.page.evaluate("document.dispatchEvent(new Event('change'))")
    opened.menu("exit_steps", "Delta").select_option("1")
    opened.menu("exit_steps", "Delta").select_option("0")
    assert "exit_steps" not in opened.page.url.partition("#")[2]
    again.page.close()


def test_a_state_that_the_page_does_not_have_is_left_alone(browser, report):
    state = "exit_steps=Delta%3D99%2Cnothing%3D1%2Clog_x%3D7&gone=d%3D1"
    strange = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), report, state)
    assert strange.troubles == []
    assert strange.drawn("exit_steps")["x"]
    strange.page.close()


def test_bounds_have_arrows_in_place_of_the_bars_towards_the_truth(browser, tmp_path, short_report):
    short = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), short_report)
    drawn, bounds = short.drawn("exit_steps"), short.drawn("exit_steps", "bounds")
    assert set(bounds["arrow"]) == {"↑"}
    assert bounds["high"] == bounds["y"]
    assert not set(bounds["marker"]) - set(drawn["marker"]), "of the dynamics"
    lines = short.drawn("exit_steps", "lines")
    joined = {at for xs, ys in zip(lines["xs"], lines["ys"], strict=True) for at in zip(xs, ys, strict=True)}
    assert joined, "means are joined"
    assert not joined & set(zip(bounds["x"], bounds["y"], strict=True))
    assert "Arrows: lower bound: some runs did not exit." in short.plot("exit_steps").inner_text()
    for name in ("lines", "theory"):
        paths = short.drawn("exit_steps", name)["xs"]
        assert paths and all(xs == sorted(xs) for xs in paths), "lines go along the axis, through bounds too"
    short.page.close()


def test_axes_and_colours_are_chosen_by_menus_and_kept_in_the_address(browser, report, opened, exits):
    plot = opened.plot("exit_steps")
    plot.get_by_role("combobox", name="Horizontal axis").select_option("d")
    plot.get_by_role("combobox", name="Vertical axis").select_option("exit_steps_median")
    plot.get_by_role("combobox", name="Colour").select_option("Delta")
    drawn = opened.drawn("exit_steps")
    assert set(drawn["x"]) <= {300.0, 3000.0}
    opened.menu("exit_steps", "gamma_ratio").select_option("3")
    drawn = opened.drawn("exit_steps")
    expected = exits.exit_steps_median.isel(gamma_ratio=3, threshold=0)
    assert sorted(drawn["y"]) == pytest.approx(sorted(expected.values[np.isfinite(expected.values)]))
    assert plot.get_by_role("group", name="Label-noise variance Δ").is_visible()
    assert not plot.locator("select[data-column=Delta]").is_visible()
    assert plot.get_by_role("heading").inner_text().startswith("Median exit steps")
    address = opened.page.url
    again = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), report, address.partition("#")[2])
    assert again.drawn("exit_steps")["y"] == drawn["y"]
    assert again.troubles == []
    again.page.close()
    assert opened.troubles == []


def test_the_axis_of_the_points_is_not_a_colour(opened):
    plot = opened.plot("exit_steps")
    plot.get_by_role("combobox", name="Horizontal axis").select_option("d")
    colours = plot.get_by_role("combobox", name="Colour")
    assert colours.locator("option[value=d]").is_disabled()
    assert colours.input_value() != "d"
    assert len(set(opened.drawn("exit_steps")["color"])) > 1


def test_a_curve_against_another_axis_is_points(opened, ds):
    plot = opened.plot("risk_bands")
    plot.get_by_role("combobox", name="Horizontal axis").select_option("d")
    assert set(opened.drawn("risk_bands")["x"]) <= set(ds.d.values.astype(float))
    assert opened.drawn("risk_bands", "bands")["xs"] == []
    assert plot.locator("select[data-column=time]").is_visible()


def test_the_keyboard_goes_from_point_to_point_and_shows_their_seeds(opened, ds):
    plot = opened.plot("exit_steps")
    plot.locator(".canvas").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"):
        opened.page.keyboard.press(key)
    drawn = opened.drawn("exit_steps")
    chosen = next(row for row, look in enumerate(drawn["marker"]) if look == "circle")
    for _ in range(chosen):
        opened.page.keyboard.press("ArrowRight")
    assert opened.drawn("exit_steps", "cursor")["x"] == [drawn["x"][chosen]]
    assert "Input dimension" in plot.locator(".point").inner_text()
    opened.page.keyboard.press("Enter")
    assert "The 8 seeds of this point" in plot.locator(".seeds").inner_text()
    seeds = opened.drawn("exit_steps", "seeds")
    column = sorted(seeds["y"])
    found = (ds.exit_steps / ds.d).isel(threshold=0).stack(point=("dynamics", "d", "Delta", "gamma_ratio"))
    close = [np.allclose(np.sort(found.isel(point=at).values), column, rtol=1e-4) for at in range(found.sizes["point"])]
    assert sum(close) == 1
    for seed in np.argsort(seeds["y"])[[0, -1]]:
        assert opened.is_painted("exit_steps", "seeds", int(seed))
    opened.page.keyboard.press("Escape")
    assert plot.locator(".seeds").is_hidden()
    assert opened.drawn("exit_steps", "seeds")["x"] == []


@pytest.mark.parametrize("name", ["exit_steps", "optimal_learning_rates"])
def test_equal_points_are_all_visible(opened, name):
    """Open markers are larger than the filled ones above them; crosses are on top, with a white rim."""
    drawn, crosses = opened.drawn(name), opened.drawn(name, "crosses")
    kinds = [
        2 if marker in ("x", "cross") else int(fill != "#ffffff")
        for marker, fill in zip(drawn["marker"], drawn["fill"], strict=True)
    ]
    assert kinds == sorted(kinds)
    assert set(kinds) >= {0, 2}
    sizes = {1: 0.0} | dict(zip(kinds, drawn["size"], strict=True))
    assert min(sizes[0], sizes[2]) > sizes[1]
    for column in ("x", "y", "color", "marker", "size"):
        assert crosses[column] == drawn[column][kinds.index(2) :]


def test_every_stop_of_the_tab_key_has_a_name(opened):
    """Also within the plots, whose elements lie in shadow trees, which axe does not all see."""
    stops = """() => {
        const found = [], search = (root) => {
            for (const element of root.querySelectorAll("*")) {
                if (element.tabIndex >= 0 && element.checkVisibility()) found.push(element);
                if (element.shadowRoot) search(element.shadowRoot);
            }
        };
        for (const canvas of document.querySelectorAll(".canvas")) search(canvas);
        return found.map((element) => [element.className, element.ariaLabel || element.title || element.textContent]);
    }"""
    found = opened.page.evaluate(stops)
    assert [name for name, label in found if not label.strip()] == []


def test_a_click_on_a_curve_shows_its_single_runs(opened):
    opened.plot("risk_bands").get_by_role("group", name="Dynamics").get_by_label("ODE").uncheck()
    opened.click("risk_bands", 10)
    runs, drawn = opened.drawn("risk_bands", "runs"), opened.drawn("risk_bands")
    assert len(runs["xs"]) == 8
    assert len(runs["xs"][0]) > 10
    assert runs["xs"][0][0] == drawn["x"][0]
    assert opened.plot("risk_bands").locator(".seeds svg").is_visible()
    opened.plot("risk_bands").get_by_role("combobox", name="Horizontal axis").select_option("d")
    assert opened.drawn("risk_bands", "runs")["xs"] == []
    assert opened.troubles == []


def test_a_figure_has_its_pdf_and_its_code_in_the_page(opened):
    with opened.page.expect_download() as download:
        opened.page.get_by_role("link", name="PDF of scan").click()
    assert Path(download.value.path()).read_bytes().startswith(b"%PDF")
    opened.page.get_by_text("Python code of scan").click()
    assert opened.page.get_by_text("drawn()").is_visible()


def test_nothing_is_wider_than_a_phone(phone):
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = """() => [...document.querySelectorAll('body *')].filter((element) =>
        !element.closest('.scroll, .picture, nav, .skip') && element.getBoundingClientRect().right > 391
    ).map((element) => element.outerHTML.slice(0, 80))"""
    assert phone.page.evaluate(wide) == []
    assert phone.troubles == []


def test_a_tap_shows_the_tooltip_on_a_phone(phone):
    crosses = [row for row, marker in enumerate(phone.drawn("exit_steps")["marker"]) if marker == "x"]
    for row in (crosses[0], crosses[5]):  # points without noise have no seeds, which would widen the axes
        assert "Runs: 8 ok" in phone.tap("exit_steps", row)
        box = phone.page.locator(".bk-Tooltip").first.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert box["y"] >= 0 and box["y"] + box["height"] <= 844


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened, scheme):
    """axe-core finds no violation of WCAG 2.1 A and AA: names, roles, order, contrast of 4.5 and more."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    opened.page.emulate_media(color_scheme=scheme)
    opened.plot("optimal_learning_rates").locator("summary").click()
    opened.plot("exit_steps").get_by_role("combobox", name="Horizontal axis").select_option("d")
    opened.click("risk_bands", 10)
    for folded in ("Reproduce it", "Traceback"):
        for summary in opened.page.locator("summary", has_text=folded).all():
            summary.click()
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    found = axe.run(opened.page, options=rules)
    assert not found.response["violations"], found.generate_report()


def test_printing_tells_what_is_chosen_and_fits_the_paper(browser, report):
    window = browser.new_page(viewport={"width": 1280, "height": 300})
    window.goto(report.as_uri())
    window.evaluate("dispatchEvent(new Event('beforeprint'))")
    window.locator("section.plot:not([data-ready])").first.wait_for(state="detached")
    window.emulate_media(media="print")
    window.set_viewport_size({"width": 673, "height": 300})  # 178 mm, the width of A4 without its margins
    widths = window.evaluate("[...document.querySelectorAll('svg.printed')].map((each) => each.clientWidth)")
    assert len(widths) == window.locator("section.plot").count()
    assert all(500 < width <= 673 for width in widths)
    label = window.locator("section.plot[data-name=exit_steps] label[data-chosen]:has(select[data-column=Delta])")
    assert label.get_attribute("data-chosen") == "0"
    assert "0" in label.evaluate("(element) => getComputedStyle(element, '::after').content")
    window.evaluate("dispatchEvent(new Event('afterprint'))")
    assert window.locator("svg.printed").count() == 0
    window.close()


def test_a_folded_table_is_printed_and_folded_again(browser, report):
    window = browser.new_page()
    window.goto(report.as_uri())
    folded = "<details class=folded><summary>How: 13 rows</summary><table><tr><td>0.1</table></details>"
    window.evaluate("(html) => document.querySelector('main').insertAdjacentHTML('beforeend', html)", folded)
    cell, summary = window.locator(".folded td"), window.locator(".folded summary")
    window.emulate_media(media="print")
    for happens, seen in (("beforeprint", True), ("afterprint", False)):
        window.evaluate("(happens) => dispatchEvent(new Event(happens))", happens)
        assert cell.is_visible() is seen
        assert not summary.is_visible()
    window.close()


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_texts_of_plots_have_eight_points_on_paper(browser, report, width):
    """Whatever the window in which the page was open, and however large its letters; arrows at bounds are no texts."""
    window = browser.new_page(viewport={"width": width, "height": 300})
    window.goto(report.as_uri())
    window.add_style_tag(content="html { font-size: 24px; }")
    window.evaluate("dispatchEvent(new Event('beforeprint'))")
    window.locator("section.plot:not([data-ready])").first.wait_for(state="detached")
    window.emulate_media(media="print")
    window.set_viewport_size({"width": 673, "height": 300})
    sizes = """() => [...document.querySelectorAll('svg.printed')].flatMap((svg) =>
        [...svg.querySelectorAll('text')].filter((text) => !"↑↓↕".includes(text.textContent)).map((text) =>
            [parseFloat(getComputedStyle(text).fontSize), svg.getScreenCTM().a]))"""
    found = np.array(window.evaluate(sizes))
    window.close()
    sizes, scales = found[found[:, 0] > 0.75 * found[:, 0].max()].T  # exponents of ten are smaller
    assert len(sizes) > 50
    assert 0.75 * (sizes * scales).min() >= 8.0


def paths_on_paper(window, name):
    """Return the number of subpaths in a PDF of the page of which only the picture of one plot is visible."""
    only = f"section.plot[data-name={name}] :is(.canvas, .printed, .printed *)"
    style = window.add_style_tag(content=f"* {{ visibility: hidden; }} {only} {{ visibility: visible; }}")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", window.pdf(), re.DOTALL)
    style.evaluate("(element) => element.remove()")
    contents = [zlib.decompressobj().decompress(stream) for stream in streams if stream.startswith(b"x")]
    return sum(len(re.findall(rb"^\S+ \S+ m$", content, re.MULTILINE)) for content in contents)


@pytest.mark.parametrize("name", ["exit_steps", "optimal_learning_rates", "risk_bands", "unit_clouds"])
def test_a_pdf_has_the_points_of_plots_that_were_seen_or_not(browser, report, opened, name):
    points = len(opened.drawn(name)["x"])
    window = browser.new_page(viewport={"width": 800, "height": 300})
    window.goto(report.as_uri())
    first = paths_on_paper(window, name)
    assert first > points > 1
    assert window.locator("svg.printed").count() == 0
    window.locator("section.plot:not([data-ready])").first.wait_for(state="detached")
    assert paths_on_paper(window, name) == pytest.approx(first, rel=0.05)
    window.close()


def test_a_pdf_has_the_points_that_are_chosen(browser, report):
    page = Opened(browser.new_page(viewport={"width": 1280, "height": 900}), report)
    every = paths_on_paper(page.page, "exit_steps")
    page.plot("exit_steps").get_by_role("checkbox", name="SGD (overlap chain)").uncheck()
    assert paths_on_paper(page.page, "exit_steps") < every
    assert page.troubles == []
    page.page.close()
