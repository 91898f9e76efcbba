"""The report: one self-contained, escaped, accessible page about the runs and the failures."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.config import from_mapping
from sweeplib.engine.storage.records.files import write_json
from sweeplib.pictures.figures.learning_rate_scan import OPTIMA
from sweeplib.pictures.report.overview import MOST, Computation, axes, outcomes, overview, provenance
from sweeplib.pictures.report.plots import interactive_plot
from sweeplib.pictures.report.tables import analysis_tables, optima_table
from sweeplib.pictures.report.write import _unbroken, case_counts, page
from tests.datasets import sweep_dataset

CONFIG = "name: '<script>alert(1)</script>'"
CARD = {
    "kind": "plot",
    "name": "a <plot>",
    "exception": "ValueError: a < b",
    "traceback": "Traceback <here>",
    "reproduce": "plot('<this>')",
}
ENDED = """\
identity,status,gamma,activation,seed,end_steps,end_time,time,quantity,value,bound,exception
{},failed,0.5,<b>,3,,,,,,,ValueError: a < b & c
{},inaccurate,0.5,<b>,4,80,2.0,4.0,drift_error,0.25,0.001,
""".format("0" * 32, "1" * 32)
"""The table of two cases."""
HOSTILE = "</script><script>alert(2)</script>"


class Outline(HTMLParser):
    """Return the tags with their attributes, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def all(self, *names):
        return [attrs for tag, attrs in self.tags if tag in names]


@pytest.fixture(scope="module")
def ds():
    return sweep_dataset(seeds=8).assign_attrs(versions="python 3.11", digest="0f", git_commit="abc")


@pytest.fixture(scope="module")
def optima(ds):
    return ANALYSES["optimal_learning_rate"](ds)


@pytest.fixture
def html(ds, optima, tmp_path):
    (tmp_path / "outcomes").mkdir()
    (tmp_path / "outcomes" / "ode.csv").write_text(ENDED + 11 * f"{ENDED.splitlines()[-1]}\n")
    figure = {
        "name": "scan",
        "title": "Scan",
        "caption": "A <caption>.",
        "source": "data:image/png;base64,AAAA",
        "pdf": "data:application/pdf;base64,AAAA",
        "script": "drawn(<script>)",
        "size": [4, 3],
        "problem": None,
    }
    undrawn = {"name": "other", "title": "Other", "caption": "None.", "problem": "KeyError: <no>"}
    hostile = optima.assign_attrs(title=HOSTILE)
    hostile["gamma_opt"].attrs["long_name"] = HOSTILE
    plot = interactive_plot("optimal_learning_rates", OPTIMA, ds, {"optimal_learning_rate": hostile}, {})
    plot = replace(plot, figure="scan")
    counts, computed = [("ODE", {"ok": 1200, "failed": 1})], [Computation(90.0, frozenset({"a:1"}))]
    return page(
        name="a <sweep>",
        config=CONFIG,
        headlines=["optimal <rate> 0.1"],
        first=(
            "Answers",
            {
                "How <precise>": {"headings": ("at <x>",), "rows": [["no <optimum>"]]},
                **{
                    name: {"headings": ("at",), "rows": [["row"]] * rows}
                    for name, rows in (("Short", 12), ("Long", 13))
                },
            },
        ),
        links=[("another <one>", "other/index.html")],
        overview=overview(ds, counts, computed),
        provenance=provenance(ds, computed, {"Seeds": "0 to 7; root seed 0"}, tmp_path),
        counts=counts,
        axes=axes(ds),
        outcomes=outcomes(tmp_path, {"ode": {"ok": 1200, "failed": 1, "inaccurate": 1}}),
        figures=[figure, undrawn],
        cards=[CARD, CARD | {"kind": "figure", "name": "other"}],
        plots=[plot],
        optima=optima_table(optima),
        tables=analysis_tables("optimal_learning_rate", hostile, ds),
        opening=("How it opens:", "open(<opening>)"),
    )


@pytest.mark.rest
def test_long_tables_are_folded(html):
    """Below what they are and the number of rows; in print they are unfolded (tests/browser)."""
    folded = re.findall('<details class="folded"><summary>(.*?)</summary>', html)
    assert folded == ["Long: 13 rows", "13 cases that ended otherwise than ok"]
    assert html.count("<td>row</td>") == 12 + 13


def test_everything_is_escaped(html):
    hostile = ("<script>alert", "a <sweep>", "A <caption>", "activation = <b>", "<no>")
    answers = ("How <precise>", "at <x>", "no <optimum>")
    for raw in (
        *hostile,
        *answers,
        "optimal <rate>",
        "drawn(<script>",
        "a <plot>",
        "a < b",
        "<here>",
        "<this>",
        "<one>",
        "<opening>",
    ):
        assert raw not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\\u003c/script\\u003e\\u003cscript\\u003ealert(2)" in html


def test_scripts_are_the_data_of_plot_and_tables_bokeh_and_our_own(html):
    scripts = Outline(html).all("script")
    assert [attrs.get("type", "") for attrs in scripts] == ["application/json"] * 2 + ["", "", ""]


def test_nothing_is_loaded_from_elsewhere(html):
    found = Outline(html).all("img", "link", "script", "iframe")
    sources = [attrs.get("src") or attrs.get("href") for attrs in found if {"src", "href"} & set(attrs)]
    assert len(sources) == 2
    assert all(source.startswith("data:") for source in sources)
    styles = re.search("<style>(.*?)</style>", html, flags=re.DOTALL)
    assert styles is not None
    assert not re.search(r"@import|url\(", styles[1])


def test_the_browser_is_told_to_load_nothing(html):
    [policy] = [attrs["content"] for attrs in Outline(html).all("meta") if "http-equiv" in attrs]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_images_have_words_and_links_have_targets(html):
    outline = Outline(html)
    assert all(attrs["alt"] for attrs in outline.all("img"))
    names = {attrs["id"] for _, attrs in outline.tags if "id" in attrs}
    anchors = [attrs["href"][1:] for attrs in outline.all("a") if attrs["href"].startswith("#")]
    assert anchors
    assert set(anchors) <= names


def test_headings_go_down_one_level_at_a_time(html):
    levels = [int(tag[1]) for tag, _ in Outline(html).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_what_scrolls_can_be_reached_by_the_keyboard(html):
    regions = [attrs for _, attrs in Outline(html).tags if attrs.get("class") in ("scroll", "picture")]
    assert regions
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)


def test_cases_say_what_happened_and_how_to_see_it_again(html):
    excess = "at time 4, drift_error = 0.25 was above its bound 0.001"
    for words in ("ValueError: a &lt; b &amp; c", "gamma = 0.5, activation = &lt;b&gt;, seed = 3", "0" * 32, excess):
        assert words in html
    for words in (
        "1 case failed",
        "Outcomes other than ok, which are results: 1 inaccurate.",
        'href="../outcomes/ode.csv"',
    ):
        assert words in html


def test_what_could_not_be_made_has_a_card_in_its_place_and_one_that_tells_all(html):
    assert "The figure could not be made: KeyError: &lt;no&gt;" in html
    assert "The plot could not be made: ValueError: a &lt; b" in html
    for words in ('id="failed-plot-a%20%3Cplot%3E"', "Traceback &lt;here&gt;", "plot(&#39;&lt;this&gt;&#39;)"):
        assert words in html
    assert "Failures (3)" in html


def test_many_cases_are_cut_and_counted_and_none_are_none(tmp_path):
    assert outcomes(tmp_path, {"ode": {"ok": 2}}).total == 0
    (tmp_path / "outcomes").mkdir()
    heading, _, line = ENDED.splitlines()
    (tmp_path / "outcomes" / "ode.csv").write_text("\n".join([heading, *[line] * (MOST + 5)]))
    found = outcomes(tmp_path, {"ode": {"inaccurate": MOST + 5}})
    assert (len(found.rows), found.total, found.failed, found.tables) == (MOST, MOST + 5, 0, ["outcomes/ode.csv"])


def test_counts_show_ok_and_every_other_status_that_occurred(tmp_path):
    write_json(tmp_path / "stages/simulate.ode.json", {"name": "simulate.ode", "counts": {"diverged": 2, "ok": 5}})
    problem = {"p": 1, "k": 1, "d": 10, "Delta": 0.0, "activation": "erf"}
    sweep = from_mapping(
        {"name": "counts", "dynamics": ["ode", "sgd"], "grid": {"gamma": [0.1]}, "problem": problem, "times": [1.0]}
    )
    found = dict(case_counts(sweep, tmp_path))
    assert list(found.values()) == [{"ok": 5, "diverged": 2}, {"ok": 0, "diverged": 0}]


def test_provenance_says_what_is_known_and_nothing_else(ds, tmp_path):
    known = dict(provenance(ds, [Computation(0.0, frozenset())], {}, tmp_path))
    assert known == {"Commit of sweeplib": "abc", "Packages": "python 3.11", "Digest of the numbers": "0f"}


def test_no_line_ends_between_a_symbol_and_its_value():
    text = "is 0.09 at $d$ = 300, $\\Delta$ = 0.5. At $d$ = $10^{4}$, 95 %"
    assert _unbroken(text) == "is 0.09 at $d = 300$, $\\Delta = 0.5$. At $d$ = $10^{4}$, 95\N{NO-BREAK SPACE}%"


def test_overview_counts_and_says_what_is_fixed(ds):
    found = overview(ds, [("ODE", {"ok": 9, "failed": 1})], [Computation(7200.0, frozenset())])
    assert ("cases", "10") in found.facts
    assert ("ended ok", "9") in found.facts
    assert found.costs == ["2 h"]
    assert "student width $p$ = 1" in found.fixed
    assert "input dimension $d$ (2)" in found.lead
    alone = overview(ds.isel(d=[0]), [("ODE", {"ok": 9, "failed": 1})], [])
    assert "input dimension" not in alone.lead
    assert f"input dimension $d$ = {ds.d.values[0]}" in alone.fixed


def test_optima_table_has_a_row_a_point_and_a_column_a_dynamics(optima, ds):
    table = optima_table(optima)
    assert len(table.rows) == ds.sizes["d"] * ds.sizes["Delta"]
    assert all(len(row) == len(table.headings) for row in table.rows)
    assert table.headings[:2] == ["Input dimension $d$", r"Label-noise variance $\Delta$"]
    assert table.fixed == ["exit threshold $T$ = 0.01"]
    best = optima.gamma_opt.sel(dynamics="ode", d=3000, Delta=1.0).item()
    cell = table.rows[-1][table.headings.index("ODE")]
    assert float(cell.split()[0]) == pytest.approx(best, rel=0.05)


def test_optima_of_dynamics_that_did_not_run_are_dashes(optima):
    table = optima_table(optima)
    sgd = table.headings.index("SGD")
    assert [row[sgd] == "–" for row in table.rows] == [row[0] == "3000" for row in table.rows]
