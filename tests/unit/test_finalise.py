"""The dataset of a sweep: axes, coordinates, statuses and results are at their places."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.language import Expression
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.finalise import _physics, finalise
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.engine.storage.records.provenance import ATTRIBUTES, CREDITS
from sweeplib.errors import InputError
from sweeplib.networks.clock import Clock
from sweeplib.networks.coordinates import constants, coordinates
from sweeplib.networks.simulation import Recording, run_cases
from sweeplib.networks.simulation.labels import OF_RUNS, explained_constants
from tests.in_process import InProcess

load_plugins(["tests.faults.troubled"])


@pytest.fixture(scope="module")
def sweep() -> Design:
    axes = (Axis("gamma0", (0.5, 0.1)), Axis("d", (10, 40), {"Delta": (0.0, 1.0)}), Axis("kappa", (0.0, 0.5)))
    derived = {"gamma": Expression("gamma0 / d"), "p": Expression("round(d**kappa)")}
    fixed = {"k": 1, "activation": "square", "a": 2.0}
    return Design(
        "finalised",
        Grid(axes, fixed, derived, used=frozenset({"p", "gamma"})),
        (0, 1, 2),
        {"calm": Run("calm"), "troubled": Run("troubled", where={"d": (10,)})},
        Recording(times=(1.0, 2.0), thresholds=(0.1, 0.2), observables=("overlap_M",)),
        clock=Clock(Expression("p / gamma")),
        cluster=InProcess(block_size=4),
        source="name: finalised\ncluster:\n  kind: local\n",
    )


@pytest.fixture(scope="module")
def path(sweep: Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("finalised")
    run_sweep(sweep, directory, progress=False)
    return finalise(sweep, directory)


@pytest.fixture(scope="module")
def dataset(path: Path) -> xr.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xr.open_zarr(path, chunks=None).load()


@pytest.mark.rest
def test_dims_and_coordinates(dataset: xr.Dataset) -> None:
    outer = ("dynamics", "d", "gamma0", "kappa", "seed")
    assert dataset.status.dims == outer
    assert dataset.exit_steps.dims == (*outer, "threshold")
    assert dataset.gamma.dims == ("d", "gamma0")
    assert dataset.gamma.attrs["formula"] == "gamma0 / d"
    assert float(abs(dataset.gamma * dataset.d / dataset.gamma0 - 1).max()) < 1e-12
    assert dataset.Delta.dims == ("d",)
    assert dataset.p.sel(d=40, kappa=0.5) == 6
    assert float(abs(dataset.clock * dataset.gamma / dataset.p - 1).max()) < 1e-12
    assert dataset.time.attrs["scale"] == "p / gamma"


def test_everything_is_labelled(dataset: xr.Dataset) -> None:
    for name, variable in dataset.variables.items():
        wanted = {"long_name", "flag_meanings"} if name == "status" else {"long_name", "symbol"}
        assert wanted <= set(variable.attrs), name
        assert variable.attrs.get("units") != "1", "the same as none, of which xarray would write [1] on plots"


def test_what_does_not_vary_is_an_attribute_and_explained(dataset: xr.Dataset, path: Path) -> None:
    """Scalar coordinates would be in the title of every plot that xarray makes."""
    fixed = {"k": 1, "a": 2.0, "spherical": 0, "activation": "square", "teacher_activation": "square"}
    assert fixed.items() <= dataset.attrs.items()
    assert dataset.attrs["start"] == "gaussian"
    assert "m0" not in dataset.attrs
    assert not [name for name, coordinate in dataset.coords.items() if not coordinate.dims]
    assert {type(value) for value in dataset.attrs.values()} <= {int, float, str}
    assert "k: teacher width; " in dataset.attrs["fixed"]
    # there if exits are not on the risk, and if the config names authors
    attributes = {*ATTRIBUTES, *OF_RUNS} - {"exit_on", *CREDITS}
    assert set(dataset.attrs) == {*attributes, *explained_constants(dataset.attrs["fixed"])}
    assert fixed.items() <= xr.open_zarr(path, group="p1_k1").attrs.items()


@pytest.mark.rest
def test_every_result_is_in_its_place(sweep: Design, dataset: xr.Dataset, path: Path) -> None:
    seen = 0
    for dynamics in sweep.runs:
        for index, case in sweep.cases(dynamics):
            place = dict(zip((*sweep.grid.dims, "seed"), index, strict=True))
            stored = dataset.sel(dynamics=dynamics).isel(place)
            alone = run_cases([case]).data
            assert stored.status == Status.ok
            np.testing.assert_array_equal(stored.exit_steps, alone["exit_steps"][0])
            matrices = open_dataset(path, shape=(case.problem.p, 1)).sel(dynamics=dynamics)
            at = {dim: stored[dim].item() for dim in place}
            np.testing.assert_array_equal(matrices.overlap_M.sel(at), alone["overlap_M"][0])
            seen += 1
    assert seen == 2 * 2 * 2 * 3 + 2 * 2 * 3


def test_cases_outside_where_are_missing(dataset: xr.Dataset) -> None:
    outside = dataset.sel(dynamics="troubled", d=40)
    assert (outside.status == Status.missing).all()
    assert outside.end_steps.isnull().all()
    assert int((dataset.status == Status.missing).sum()) == outside.status.size


def test_what_is_shown_of_a_dataset_is_not_in_it() -> None:
    """An edit of an analysis does not write it again."""
    assert parsed(_physics("name: x\nseeds: 2\nanalyses: {}\nfigures: []\ntimeout: 3\n")) == {"name": "x", "seeds": 2}


def test_overlap_group_covers_no_more_than_its_shape(path: Path) -> None:
    assert open_dataset(path, shape=(6, 1)).sizes["d"] == 1
    shapes = r"no group of this shape \(p, k\); got \(7, 1\); expected one of \(1, 1\), \(3, 1\), \(6, 1\)"
    with pytest.raises(InputError, match=shapes):
        open_dataset(path, shape=(7, 1))


def test_attributes_say_where_it_comes_from(dataset: xr.Dataset) -> None:
    assert parsed(dataset.attrs["config"]) == {"name": "finalised"}
    assert "numpy" in dataset.attrs["versions"]
    assert len(dataset.attrs["digest"]) == 32


def test_reduces_by_name(dataset: xr.Dataset) -> None:
    mean = dataset.exit_steps.mean("seed").sel(d=10, dynamics="calm")
    assert mean.dims == ("gamma0", "kappa", "threshold")


def test_refuses_what_has_not_been_run(sweep: Design, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="24 cases of calm have not been run yet"):
        finalise(sweep, tmp_path)


def test_what_follows_from_another_field_varies_with_it() -> None:
    axes = (Axis("activation", ("erf", "he2")), Axis("spherical", (False, True)))
    fixed = {"gamma": 0.1, "p": 1, "k": 1, "d": 9, "Delta": 0.0}
    sweep = Design("followed", Grid(axes, fixed), (0,), {"ode": Run("ode")}, Recording(times=(1.0,)))
    found = {each.name: each for each in coordinates(sweep, sweep.points("ode").cases[0].problem)}
    assert found["teacher_activation"].dims == ("activation",)
    assert found["teacher_activation"].values.tolist() == ["erf", "he2"]
    assert (found["start"].dims, found["start"].values.tolist()) == (("spherical",), ["gaussian", "sphere"])
    assert "m0" not in found
    assert {"start", "teacher_activation"}.isdisjoint(constants(sweep, sweep.points("ode").cases[0].problem))
