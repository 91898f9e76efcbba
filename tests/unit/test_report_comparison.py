"""The page that compares sweeps: what differs in configs, figures of all, refusals."""

import re
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.records.files import write_json, write_text
from sweeplib.pictures.report import comparison
from sweeplib.pictures.report.comparison import differences, labels
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
    shown = ("quiet and noisy", "<td>problem.Delta</td>", "<td>grid.d</td>", "Optimal learning rates")
    for words in (*shown, "Ratio of exit steps", "sweep=[&#39;quiet&#39;, &#39;noisy&#39;]", "Seeds"):
        assert words in html
    assert html.count("<img width=") == 4
    assert 'href="noisy/report/index.html"' in html
    without_programs = re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r'(src|href)="https?:', without_programs)


def test_one_sweep_is_written_again_from_its_folder(folders: list[Path]) -> None:
    page = folders[0] / "report" / "index.html"
    before = page.read_bytes()
    page.unlink()
    status, said = reported(folders[0])
    assert (status, said.splitlines()[-1]) == (0, str(page))
    assert page.read_bytes() == before


def test_the_page_lies_where_it_is_asked_for(
    folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of two sweeps is drawn above: here the name of one is written."""

    def write_name(sweeps: list[tuple[Design, Path]], path: Path) -> list[str]:
        write_text(path, sweeps[1][0].name)
        return []

    monkeypatch.setattr(comparison, "write_comparison", write_name)
    code, said = reported(*folders, "--output", tmp_path / "deep" / "here.html")
    assert (code, said.strip()) == (0, str(tmp_path / "deep" / "here.html"))
    assert (tmp_path / "deep" / "here.html").read_text() == "noisy"
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
        ("stages/finalise.json", "it has no record stages/finalise.json"),
        ("stages/analyse.exit_times.json", "it has no record stages/analyse"),
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
    file = folders[1] / "stages/simulate.sgd_chain.json"
    content = file.read_bytes()
    write_json(file, {"name": "simulate.sgd_chain", "counts": {"missing": 3, "ok": 7}})
    try:
        code, said = reported(*folders)
    finally:
        file.write_bytes(content)
    assert (code, "lacks 3 cases" in said) == (2, True)


def test_keys_with_other_values_are_listed_and_others_counted() -> None:
    table = differences(
        ["name: a\nproblem: {p: 1, k: 1}\nseeds: 4\n", "name: b\nproblem: {p: 2, k: 1}\nseeds: 4\ntimes: [0, 1]\n"],
        ["a", "b"],
    )
    [(caption, cells)] = table.items()
    assert "the other 2 are the same" in caption
    assert cells == {"headings": ["key", "a", "b"], "rows": [["problem.p", "1", "2"], ["times", "–", "[0, 1]"]]}


def test_names_are_as_long_as_they_must_be(tmp_path: Path) -> None:
    assert labels([tmp_path / "a" / "x", tmp_path / "b" / "x"]) == ["a/x", "b/x"]
    assert labels([tmp_path / "a" / "x", tmp_path / "b" / "y"]) == ["x", "y"]


def test_names_that_differ_in_signs_alone_have_a_figure_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of all sweeps but the last of such names were lost."""
    names = ["x-1", "x_1", "x 1"]
    alone = [{"where": {"sweep": name}} for name in names]
    monkeypatch.setattr(comparison, "_fits", lambda *_: False)
    monkeypatch.setattr(comparison, "_at_single_values", lambda *_: [{}, *alone])
    found = comparison.compared_figures([{"line": {}}] * 3, names, xr.Dataset(), {})
    assert list(found.values()) == [{"kind": "line", **view} for view in alone] and next(iter(found)) == "line_x_1"
