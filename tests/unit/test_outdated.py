"""What is made from a dataset that was written again later, by Python or by the command of a single stage."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import sweeplib
from sweeplib.commands.cli import app
from sweeplib.engine.code import sources
from sweeplib.engine.storage.records.artefacts import outdated_names, stale_outputs
from sweeplib.engine.storage.records.files import read_json, write_json
from tests.faults.sweeps import files
from tests.in_process import InProcess

CONTENT = {
    "problem": {"p": 1, "k": 1, "activation": "square", "spherical": True, "d": 50, "Delta": 0},
    "grid": {"gamma": [0.02, 0.08, 0.14]},
    "dynamics": {"sgd_chain": {}},
    "times": [0, 4, 8],
    "thresholds": [0.05],
    "analyses": ["exit_times"],
    "figures": ["exited_fraction"],
}


EDITS = {
    "sweeplib/engine/storage/dataset/finalise.py": {"stages/finalise.done"},
    "sweeplib/analysis/exit_times.py": {"stages/analyse.exit_times.done"},
    "sweeplib/analysis/kit/passages.py": {
        "stages/analyse.exit_times.done",
        "figures/exited_fraction.png",
        "report/index.html",
    },
    "sweeplib/pictures/figures/scaling.py": {"figures/exited_fraction.png", "report/index.html"},
    "sweeplib/pictures/report/page.html.j2": {"report/index.html"},
    "sweeplib/commands/upkeep/prune.py": set(),
}
"""What is made again after an edit of a file of the library, as its imports say."""


def sweep_with(seeds: int, results: Path) -> sweeplib.Sweep:
    return sweeplib.Sweep(name="grown", results=results, seeds=seeds, **CONTENT)


def stale(seeds: int, folder: Path, **changed: object) -> set[str]:
    """Return what the workflow makes again when it runs the sweep with these seeds; it changes nothing."""
    sweep = sweeplib.Sweep(name="grown", results=folder.parent, seeds=seeds, **(CONTENT | changed)).design
    before = files(folder)
    found = stale_outputs(folder, sweep, remember=False)
    assert files(folder) == before
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture(scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    with InProcess().client() as client:
        sweep_with(4, results).run(client, progress=False)
        sweep_with(4, results).report()
        assert not outdated_names(results / "grown", CONTENT["analyses"], CONTENT["figures"])
        sweep_with(2, results).run(client, progress=False)
    return results / "grown"


@pytest.fixture
def folder(_folder: Path, tmp_path: Path) -> Path:
    """Return the folder of a sweep with a report of 4 seeds and then a dataset of 2."""
    return Path(shutil.copytree(_folder, tmp_path / "grown", symlinks=True))


def said(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(map(str, arguments)))
    return found.exit_code, found.output


@pytest.mark.slow
def test_a_report_of_parts_of_different_datasets_is_refused_in_one_line(folder: Path) -> None:
    page = (folder / "report" / "index.html").read_bytes()
    code, output = said("report", folder)
    assert code == 2 and "analysis exit_times, figure exited_fraction; expected `sweeplib sweep`" in output
    assert (folder / "report" / "index.html").read_bytes() == page

    code, output = said("summary", folder / "config.yaml", "--results", folder.parent)
    assert "of an earlier dataset, until `sweeplib sweep` makes them again: analysis exit_times" in output

    sweep_with(2, folder.parent).report()
    assert said("report", folder)[0] == 0
    assert "earlier" not in said("summary", folder / "config.yaml", "--results", folder.parent)[1]


@pytest.mark.parametrize("words", ["report", "figures", "analyse", "export --what all --output tables"])
def test_nothing_is_made_of_a_dataset_of_another_config(words: str, folder: Path) -> None:
    """A report had the number of cases of the config beside plots of the dataset; a summary says it."""
    page = (folder / "report" / "index.html").read_bytes()
    command, *options = words.split()
    other = [folder / "config.yaml", "--results", folder.parent, "--set", "seeds=3"]
    code, output = said(command, *other, *options)
    assert code == 2 and "dataset.zarr: the dataset is of another config; expected `sweeplib sweep`" in output
    assert (folder / "report" / "index.html").read_bytes() == page
    assert "is of another config: `sweeplib sweep` makes it again" in said("summary", *other)[1]


def test_a_program_reads_the_summary_that_people_read(folder: Path) -> None:
    """Of a file and of the folder alone; a path is there once its file is."""
    for named in ([folder / "config.yaml", "--results", folder.parent], [folder]):
        (code, text), (same, record) = said("summary", *named), said("summary", *named, "--json")
        told = json.loads(record)
        assert code == same == 0 and told.pop("failed") is False
        assert told.pop("lines") == text.splitlines() and "8 cases" not in text
        assert all(path is not None and Path(path).exists() for path in told.values()), told
        assert {"dataset", "report"} <= told.keys()
    shutil.rmtree(folder / "report")
    code, record = said("summary", folder / "config.yaml", "--results", folder.parent, "--json")
    assert json.loads(record)["report"] is None


@pytest.mark.slow
def test_a_comparison_with_them_is_refused_too(folder: Path) -> None:
    other = folder.parent / "other"
    folder.rename(other)
    with InProcess().client() as client:
        sweep_with(2, folder.parent).run(client, progress=False)
    sweep_with(2, folder.parent).report()
    code, output = said("report", folder, other)
    assert code == 2 and str(other) in output and "the dataset was written again" in output


def test_a_workflow_makes_them_again(folder: Path) -> None:
    """A stage runs again where its output is not of this config or of this dataset."""
    parts = {"stages/analyse.exit_times.done", "figures/exited_fraction.png", "report/index.html"}
    dataset = {"stages/plan.done", "stages/simulate.sgd_chain.done", "stages/finalise.done"}
    assert stale(2, folder) == parts
    assert stale(4, folder) == parts | dataset, "the dataset has 2 seeds, the config 4"


def test_counts_of_other_simulations_are_not_those_of_the_dataset(folder: Path) -> None:
    marker = folder / "stages/simulate.sgd_chain.json"
    write_json(marker, (read_json(marker) or {}) | {"made_from": {"settings": "other"}})
    found = stale(2, folder)
    assert "stages/simulate.sgd_chain.done" in found and "stages/finalise.done" not in found


@pytest.mark.slow
def test_options_and_code_of_analyses_and_figures_are_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the workflow is started; Snakemake remembers them in that folder only."""
    sweep_with(2, folder.parent).report()
    analysis, figure = "stages/analyse.exit_times.done", "figures/exited_fraction.png"
    assert stale(2, folder) == set()
    report = "report/index.html"
    assert stale(2, folder, analyses={"exit_times": {"confidence": 0.9}}) == {analysis, report}
    assert stale(2, folder, figures={"exited_fraction": {"where": {"dynamics": "sgd_chain"}}}) == {figure, report}
    for file, outputs in EDITS.items():
        with monkeypatch.context() as edit:
            edited(file, edit)
            assert stale(2, folder) == outputs, file
    forget_code()
    (folder / figure).write_bytes(b"another picture")
    assert stale(2, folder) == {figure}


def edited(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file of the library be read with a line more."""
    read, read_text = sources.file_bytes, sources.source_text
    monkeypatch.setattr(sources, "file_bytes", lambda path: read(path) + b"more" * path.match(file))
    monkeypatch.setattr(sources, "source_text", lambda path: read_text(path) + "EDITED = True\n" * path.match(file))
    forget_code()


def forget_code() -> None:
    for function in (sources.library_digest, sources._content_of):
        function.cache_clear()
