"""A dataset that grows has the bytes of one that is written at once, also after interruptions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution import blocks, work
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset import folder as dataset
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.engine.storage.dataset.versions import name_of
from sweeplib.engine.storage.store import inventory as inventory_module
from sweeplib.engine.storage.store import run_store
from sweeplib.networks.simulation import Recording
from tests.in_process import Here, computed
from tests.tiers import slow_but

load_plugins(["tests.faults.troubled"])


def sweep_of(gammas: int, seeds: int, points: int = 3) -> Design:
    axes = (
        Axis("gamma", tuple(0.1 * (1 + at) for at in range(gammas))),
        Axis("Delta", tuple(0.25 * at for at in range(points))),
    )
    grid = Grid(axes, {"p": 1, "k": 1, "d": 20, "activation": "square"})
    recording = Recording((0.5, 1.0), (0.1,), ("overlap_M",))
    runs = {"calm": Run("calm"), "troubled": Run("troubled", where={"seed": (0,)})}
    return Design("grown", grid, tuple(range(seeds)), runs, recording, cluster=Here(block_size=4), source="name: x")


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of 60 bytes be split, small inventories be remembered, and an index have several chunks."""
    monkeypatch.setattr(work, "dispatched", computed)
    monkeypatch.setattr(dataset, "CHUNK_BYTES", 60)
    monkeypatch.setattr(dataset, "FILE_BYTES", 8)
    monkeypatch.setattr(inventory_module, "FEWEST", 1)
    monkeypatch.setattr(run_store, "MANY", 3)


def written(sweep: Design, directory: Path) -> Path:
    run_sweep(sweep, directory, progress=False)
    return finalise(sweep, directory)


def content(path: Path) -> dict[str, bytes]:
    """Return the files of a dataset but for the processors of the machine, which all are the same here."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


STEPS = {
    "a seed": (sweep_of(5, 2, 2), sweep_of(5, 3, 2)),
    "a value": (sweep_of(5, 2, 2), sweep_of(5, 2, 3)),
    "both axes": (sweep_of(2, 2, 2), sweep_of(4, 4)),
}


LINKED = {"a seed": {"exit_time", "gamma"}, "a value": {"exit_time", "seed"}, "both axes": {"time"}}
"""Some of the arrays of which chunks are shared: those of results have all values of the longest axis."""


@pytest.mark.parametrize("step", slow_but(STEPS, "both axes"))
def test_growth_gives_the_dataset_of_a_full_rewrite(tmp_path: Path, step: str) -> None:
    small, large = STEPS[step]
    before = sweeplib.open(written(small, tmp_path / "grown"))
    grown = written(large, tmp_path / "grown")
    whole = written(large, tmp_path / "whole")
    assert name_of(grown) == name_of(whole)
    assert content(grown) == content(whole)
    shared = {axis.name: list(axis.values) for axis in small.grid.axes} | {"seed": list(small.seeds)}
    xr.testing.assert_equal(sweeplib.open(grown).sel(shared).load(), before.load())
    links = [file for file in grown.rglob("*") if file.is_file() and file.stat().st_nlink > 1]
    assert all(file.name != "zarr.json" for file in links)
    assert {str(file.relative_to(grown)).split("/c/")[0] for file in links} >= LINKED[step]


@pytest.mark.rest
def test_only_new_cases_are_computed(tmp_path: Path) -> None:
    small, large = STEPS["a seed"]
    assert run_sweep(small, tmp_path, progress=False)["calm"].computed == small.size_of("calm")
    assert run_sweep(large, tmp_path, progress=False)["calm"].computed == large.size_of("calm") - small.size_of("calm")
    assert run_sweep(replace(large, seeds=(0, 2)), tmp_path, progress=False)["calm"].computed == 0
    assert np.array([run_sweep(large, tmp_path, progress=False)["calm"].cases["ok"]]) == large.size_of("calm")


def test_a_segment_tells_the_seconds_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those in which others had the processor: the report calls them processor time."""
    ticks = iter(range(1000))
    monkeypatch.setattr(blocks, "seconds_at_work", lambda: 0.5 * next(ticks))
    sweep = sweep_of(2, 2, 2)
    run_sweep(sweep, tmp_path, progress=False)
    headers = [segment.header for name in sweep.runs for segment in run_store.RunStore(tmp_path, name).segments]
    assert {header["seconds"] for header in headers} == {0.5}
