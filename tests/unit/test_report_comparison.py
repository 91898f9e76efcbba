"""The comparison of sweeps: what differs in configs and results, refusals, figures with common ranges."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure as Drawing

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.engine.storage.records.files import write_json
from sweeplib.pictures.figures.kit.common_ranges import share_ranges
from sweeplib.pictures.report.comparison import labels
from sweeplib.pictures.report.side_by_side import Value, beside, differences, headline_tables, ratio_of
from tests.compared import finished_pair


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return finished_pair(tmp_path_factory.mktemp("results"))


def reported(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["report", *map(str, arguments)])
    return found.exit_code, found.output


def test_a_page_shows_two_sweeps_side_by_side(folders: list[Path]) -> None:
    code, said = reported(*folders)
    path = folders[0].parent / "quiet_vs_noisy.html"
    assert (code, said.strip()) == (0, str(path))
    html = path.read_text()
    for words in ("quiet and noisy", "<code>problem.Delta</code>", "<code>grid.d</code>", "Optimal learning rate"):
        assert words in html
    assert html.count("data:image/png;base64,") == 3
    assert "The axes have the same ranges." in html
    assert "This sweep has no such figure." in html
    assert 'href="noisy/report/index.html"' in html
    assert not re.search(r'(src|href)="https?:', html)


def test_one_sweep_is_written_again_from_its_folder(folders: list[Path]) -> None:
    page = folders[0] / "report" / "index.html"
    before = page.read_bytes()
    page.unlink()
    status, said = reported(folders[0])
    assert (status, said.splitlines()[-1]) == (0, str(page))
    assert page.read_bytes() == before


def test_the_page_lies_where_it_is_asked_for(folders: list[Path], tmp_path: Path) -> None:
    code, said = reported(*folders, "--output", tmp_path / "deep" / "here.html")
    assert (code, said.strip()) == (0, str(tmp_path / "deep" / "here.html"))
    assert reported(*folders, "--output", tmp_path)[0] == 2
    assert reported(folders[0], "--output", tmp_path / "here.html")[0] == 2


def test_folders_that_cannot_be_compared_are_refused_in_one_line(folders: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "planned").mkdir()
    write_json(tmp_path / "planned" / "plan.json", {})
    refused = {
        "no sweep in this folder": (folders[0], tmp_path / "empty"),
        "the same sweep twice": (folders[0], folders[1], folders[0].parent / "." / "quiet"),
        "the sweep is not finished: it has no config.yaml": (folders[0], tmp_path / "planned"),
        "no such file": (folders[0], tmp_path / "none"),
    }
    for words, paths in refused.items():
        code, said = reported(*paths)
        assert code == 2, said
        assert words in said
        assert said.count("\n") == 1
    assert "--set" in reported(*folders, "--set", "seeds=3")[1]


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("dataset.done.json", "it has no dataset.done.json"),
        ("analysis/exit_times.done.json", "it has no analysis"),
    ],
)
def test_an_unfinished_sweep_is_refused(folders: list[Path], missing: str, words: str) -> None:
    file = folders[1] / missing
    content = file.read_bytes()
    file.unlink()
    try:
        code, said = reported(*folders)
    finally:
        file.write_bytes(content)
    assert code == 2
    assert words in said


def test_missing_cases_are_refused(folders: list[Path]) -> None:
    file = folders[1] / "sgd_chain.done.json"
    content = file.read_bytes()
    write_json(file, {"cases": {"missing": 3, "ok": 7}})
    try:
        code, said = reported(*folders)
    finally:
        file.write_bytes(content)
    assert (code, "lacks 3 cases" in said) == (2, True)


def test_keys_with_other_values_are_listed_and_others_counted() -> None:
    rows, equal = differences(
        ["name: a\nproblem: {p: 1, k: 1}\nseeds: 4\n", "name: b\nproblem: {p: 2, k: 1}\nseeds: 4\ntimes: [0, 1]\n"]
    )
    assert [(row.heading, row.cells) for row in rows] == [("problem.p", ["1", "2"]), ("times", ["–", "[0, 1]"])]
    assert equal == 2


def test_headlines_meet_at_equal_points(folders: list[Path]) -> None:
    from sweeplib.config import load

    sweeps = [(load(folder / "config.yaml"), folder) for folder in folders]
    [table] = headline_tables(sweeps)
    cells = {row.heading: row.cells for row in table.rows}
    [shared] = [cells[heading] for heading in cells if "$d$ = 50" in heading]
    [alone] = [cells[heading] for heading in cells if "$d$ = 70" in heading]
    assert all(cell != "–" for cell in shared)
    assert (alone[0], alone[1] == "–") == ("–", False)
    best = sweeps[0][1]
    found = sweeplib.open(best / "analysis" / "optimal_learning_rate.zarr").gamma_opt.item()
    assert float(shared[0].split()[0]) == pytest.approx(found, rel=0.05)


def test_the_interval_of_a_ratio_covers_as_often_as_those_of_its_parts() -> None:
    """Two log-normal numbers with intervals of 95 %, of which one is asymmetric: 2.5 % of the ratios on each side."""
    rng = np.random.default_rng(0)
    ends = np.exp(1.96 * np.array([0.3, 0.1]))
    found = [
        ratio_of(*(Value(best, best / end, best * end, at_edge=False) for best, end in zip(pair, ends, strict=True)))
        for pair in np.exp(rng.normal(size=(20_000, 2)) * [0.3, 0.1])
    ]
    for missed in ([one.low > 1.0 for one in found], [one.high < 1.0 for one in found]):
        assert np.mean(missed) == pytest.approx(0.025, abs=0.004)
    skewed = ratio_of(Value(1.0, 1.0, 1.0, at_edge=False), Value(2.0, 1.5, 4.0, at_edge=False))
    np.testing.assert_allclose([skewed.best, skewed.low, skewed.high], [2.0, 1.5, 4.0])


def test_a_ratio_of_numbers_that_may_be_zero_has_no_interval() -> None:
    one, unsure = Value(1.0, 0.5, 1.5, at_edge=False), Value(1.0, -0.5, 1.5, at_edge=False)
    assert np.isnan(ratio_of(one, unsure).low)
    assert ratio_of(one, Value(-1.0, -2.0, -0.5, at_edge=False)) is None


def test_names_are_as_long_as_they_must_be(tmp_path: Path) -> None:
    assert labels([tmp_path / "a" / "x", tmp_path / "b" / "x"]) == ["a/x", "b/x"]
    assert labels([tmp_path / "a" / "x", tmp_path / "b" / "y"]) == ["x", "y"]


def test_rows_that_differ_are_marked() -> None:
    rows = beside([[("commit", "1"), ("seeds", "4")], [("commit", "2"), ("seeds", "4")]])
    assert {row.heading: row.apart for row in rows} == {"commit": True, "seeds": False}


def drawing(low: float, high: float, label: str = "x", scale: str = "linear", panels: int = 1) -> Drawing:
    found = Drawing()
    grid = found.subplots(1, panels, sharex=True, sharey=True, squeeze=False)
    for axes in grid[0]:
        axes.set(xlim=(low, high), ylim=(-high, high), xlabel=label, xscale=scale)
    return found


def test_comparable_axes_get_the_union_of_their_ranges() -> None:
    one, other = drawing(1, 4), drawing(2, 9)
    assert share_ranges([one, other])
    assert [each.axes[0].get_xlim() for each in (one, other)] == [(1, 9), (1, 9)]
    assert [each.axes[0].get_ylim() for each in (one, other)] == [(-9, 9), (-9, 9)]
    one, other = drawing(1, 4, panels=2), drawing(2, 9, panels=3)
    assert share_ranges([one, other])
    assert {axes.get_xlim() for each in (one, other) for axes in each.axes} == {(1, 9)}


def test_axes_of_other_labels_or_scales_keep_their_ranges() -> None:
    for other in (drawing(2, 9, label="y"), drawing(2, 9, scale="log")):
        assert not share_ranges([drawing(1, 4), other])
        assert other.axes[0].get_xlim() == (2, 9)


def test_maps_get_one_range_of_colours() -> None:
    maps = []
    for top in (1.0, 7.0):
        found = Drawing()
        mappable = found.subplots().pcolormesh(np.linspace(0, top, 4).reshape(2, 2))
        found.colorbar(mappable)
        maps.append((found, mappable))
    assert share_ranges([found for found, _ in maps])
    assert {mappable.get_clim() for _, mappable in maps} == {(0.0, 7.0)}
