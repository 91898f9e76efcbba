"""Datasets of several sweeps as one."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import xarray as xr

import sweeplib
from sweeplib import InputError
from sweeplib.analysis import ANALYSES
from sweeplib.engine.status import Status
from tests.datasets import sweep_dataset, with_outcome

MACHINE = "A (numba 1)"


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=4).assign_attrs(processors=MACHINE)


def test_the_cases_of_overlapping_sweeps_are_those_of_one(ds: xr.Dataset) -> None:
    """In any order, from Dask too; a case of no sweep is missing, and integers stay integers."""
    one, other = ds.isel(seed=slice(0, 3)), ds.isel(seed=slice(2, 4), Delta=[1])
    for parts in ((one, other), (other, one.chunk(seed=1))):
        found = sweeplib.combine(*parts)
        assert (found.status.dtype, found.seed.dtype, found.d.dtype) == (np.uint8, ds.seed.dtype, ds.d.dtype)
        lacking = (ds.seed == 3) & (ds.Delta == 0.0)
        assert (found.status.where(lacking, drop=True) == Status.missing).all()
        known = found.where(~lacking).assign(status=found.status)
        for name in ds.data_vars:
            xr.testing.assert_identical(known[name].where(~lacking), ds[name].where(~lacking))
        xr.testing.assert_identical(found.gamma, ds.gamma)
        assert found.attrs["k"] == 1 and found.status.attrs == ds.status.attrs
    assert sweeplib.combine(ds).drop_attrs().identical(ds.drop_attrs())
    exits = sweeplib.combine(one, ds.isel(seed=[3])).sweep.exit_times()
    assert exits.drop_attrs().identical(ds.sweep.exit_times().drop_attrs())


def test_a_field_that_each_sweep_fixes_becomes_an_axis(ds: xr.Dataset) -> None:
    parts = [ds.isel(d=place, drop=True).assign_attrs(d=int(ds.d[place])) for place in (0, 1)]
    found = sweeplib.combine(*parts)
    assert found.d.values.tolist() == ds.d.values.tolist() and "d" not in found.attrs
    xr.testing.assert_equal(found.risk.transpose(*ds.risk.dims), ds.risk)
    assert sweeplib.combine(parts[0], ds).risk.sizes["d"] == 2
    assert found.sweep.figure("line", y="risk").axes


def test_labels_that_differ_by_rounding_are_one(ds: xr.Dataset) -> None:
    moved = ds.assign_coords(gamma_ratio=ds.gamma_ratio * (1.0 + 2.0**-52))
    assert sweeplib.combine(ds, moved.assign_coords(gamma=ds.gamma.variable)).gamma_ratio.identical(ds.gamma_ratio)


def test_a_case_that_failed_is_taken_from_where_it_ended(ds: xr.Dataset) -> None:
    failed = with_outcome(ds, "failed", (ds.seed == 1) & (ds.status == Status.ok))
    for parts in ((failed, ds), (ds, failed)):
        assert sweeplib.combine(*parts).drop_attrs().identical(ds.drop_attrs())


@pytest.mark.parametrize(
    ("mine", "others", "exact"),
    [
        (MACHINE, MACHINE, True),
        (MACHINE, "B (numba 1)", False),
        (MACHINE, "A (numba 2)", False),
        (f"{MACHINE}, B (numba 1)", f"{MACHINE}, B (numba 1)", False),
        ("A", "A", False),
        (MACHINE, None, False),
    ],
)
def test_last_bits_are_those_of_one_processor_and_one_numba(
    mine: str, others: str | None, exact: bool, ds: xr.Dataset
) -> None:
    """Two runs on the same two machines have had their cases at other ones of them; an unnamed machine is any."""
    one, other = ds.assign_attrs(processors=mine), ds.assign(risk=ds.risk * (1 + 1e-15))
    other.attrs = {**ds.attrs, "processors": others}
    if others is None:
        del other.attrs["processors"]
    if exact:
        with pytest.raises(InputError, match=r"^risk: other numbers of one case"):
            sweeplib.combine(one, other)
    else:
        assert sweeplib.combine(one, other).risk.identical(ds.risk)


def table(ds: xr.Dataset, keep: slice = slice(None), *, reverse: bool = False) -> xr.Dataset:
    """Return the dataset as one of a table of points, some of them, with labels of its own."""
    axes = [name for name in ("d", "Delta", "gamma_ratio") if name in ds.dims]
    rows = ds.stack(point=axes, create_index=False).isel(point=keep)
    rows = rows.isel(point=slice(None, None, -1 if reverse else 1))
    return rows.assign_coords(point=np.arange(rows.sizes["point"])).transpose("dynamics", "point", "seed", ...)


def test_a_case_that_a_limit_stopped_is_taken_from_where_it_ended(ds: xr.Dataset) -> None:
    at = (ds.seed == 1) & (ds.status == Status.ok)
    stopped = with_outcome(ds.assign(risk=ds.risk.where(~at | (ds.time < 0.5 * ds.time[-1]))), "timeout", at)
    for pair in ((ds, stopped), (stopped, ds)):
        xr.testing.assert_equal(sweeplib.combine(*pair), sweeplib.combine(ds))


def risks(ds: xr.Dataset) -> dict[tuple[float, ...], np.ndarray]:
    """Return the risks of each point and seed by the parameters."""
    flat = ds if "point" in ds.dims else table(ds)
    names = ("d", "Delta", "gamma")
    return {
        (*(float(f"{flat[name].values[at]:.9g}") for name in names), int(seed)): flat.risk.isel(point=at)
        .sel(seed=seed)
        .values
        for at in range(flat.sizes["point"])
        for seed in flat.seed.values
    }


def zipped(ds: xr.Dataset, *, shift: int = 0) -> xr.Dataset:
    """Return the dataset of a zip of d with Delta: Delta is an axis, d follows it, from elsewhere on with a `shift`."""
    parts = [ds.isel(Delta=[at], d=(at + shift) % 2) for at in (0, 1)]
    moved = [part.drop_vars("d").assign_coords(d=("Delta", [part.d.item()])) for part in parts]
    return xr.concat(moved, "Delta", coords="all", compat="override", data_vars="minimal").transpose(
        *ds.status.isel(d=0).dims, ...
    )


SHAPES: dict[str, Callable[[xr.Dataset], tuple[xr.Dataset, xr.Dataset]]] = {
    "a grid and a table": lambda ds: (ds.isel(gamma_ratio=slice(0, 2)), table(ds)),
    "two tables in other orders": lambda ds: (table(ds, slice(0, 5)), table(ds, slice(3, None), reverse=True)),
    "a table and a zip": lambda ds: (table(ds), zipped(ds)),
    "two zips of other partners": lambda ds: (zipped(ds), zipped(ds, shift=1)),
    "a derived axis and its values": lambda ds: (ds.isel(d=[0]), table(ds).drop_vars("gamma_ratio")),
}


@pytest.mark.parametrize("dropped", [False, True], ids=["", "rounded"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_matched_by_their_parameters(ds: xr.Dataset, shape: str, dropped: bool) -> None:
    """In any order; a point of both is one row, and no number is another point's."""
    one, other = SHAPES[shape](ds)
    if dropped:
        other = other.assign_coords(gamma=other.gamma * (1 + 2.0**-52))
    known = risks(ds)
    wanted = risks(one).keys() | risks(other).keys()
    for parts in ((one, other), (other, one)):
        found = sweeplib.combine(*parts)
        assert found.status.dtype == np.uint8 and not (found.status == Status.missing).all(["dynamics", "seed"]).any()
        values = risks(found)
        assert values.keys() == wanted and found.sizes["point"] * found.sizes["seed"] == len(wanted)
        for key, risk in values.items():
            np.testing.assert_array_equal(risk, known[key])
    assert found.sweep.exit_times().sizes["point"] == found.sizes["point"]


@pytest.mark.parametrize(("unit", "processor"), [(1.0, MACHINE), (1e-15, "B (numba 1)")])
def test_numbers_of_one_point_that_differ_are_named_by_its_parameters(
    unit: float, processor: str, ds: xr.Dataset
) -> None:
    rows = table(ds.assign(risk=unit * ds.risk), reverse=True)
    changed = rows.assign(risk=rows.risk + 1e-3 * unit * (rows.seed == 2)).assign_attrs(processors=processor)
    with pytest.raises(
        InputError, match=r"^risk: other numbers of one case at dynamics=ode, .*gamma=.*seed=2, time=0.0"
    ):
        sweeplib.combine(ds.assign(risk=unit * ds.risk), changed)


def test_runs_that_diverge_hide_no_difference_of_others(ds: xr.Dataset) -> None:
    """Their risks may be 1e268, of which all differences of other cases were a small part."""
    at = (ds.seed == 1) & (ds.status == Status.ok)
    diverged = with_outcome(ds.assign(risk=ds.risk.where(~at, 1e268)), "diverged", at)
    other = diverged.assign(risk=diverged.risk * (1 + 1e-3 * (ds.seed == 2))).assign_attrs(processors="B (numba 1)")
    with pytest.raises(InputError, match=r"^risk: other numbers of one case at .*seed=2"):
        sweeplib.combine(diverged, other)
    nearly = diverged.assign(risk=diverged.risk + 1e-13 * ds.risk.max("time")).assign_attrs(other.attrs)
    assert sweeplib.combine(diverged, nearly).risk.identical(diverged.risk)


def test_statuses_are_known_without_attributes(ds: xr.Dataset) -> None:
    """As after arithmetic of xarray; what else the attributes said is asked for in a line."""
    bare = ds.drop_attrs()
    with_fields = bare.assign_attrs({name: value for name, value in ds.attrs.items() if name != "title"})
    assert sweeplib.combine(with_fields, with_fields).status.equals(ds.status)
    assert with_fields.sweep.exit_times().exit_time_mean.equals(ds.sweep.exit_times().exit_time_mean)
    with xr.set_options(keep_attrs=False):
        assert (with_fields * 1).assign(status=bare.status).status.attrs == {}
    for name in ANALYSES:
        with suppress(InputError):
            ANALYSES[name](bare)


def with_attrs(ds: xr.Dataset, name: str, **attrs: str) -> xr.Dataset:
    """Return the dataset with other attributes of a variable."""
    return (
        ds.assign_coords({name: ds[name].assign_attrs(attrs)})
        if name in ds.coords
        else ds.assign({name: ds[name].assign_attrs(attrs)})
    )


CHANGES: dict[str, tuple[Callable[[xr.Dataset], xr.Dataset], str]] = {
    "numbers": (
        lambda ds: ds.assign(risk=ds.risk + 1e-9 * (ds.seed == 2)),
        r"^risk: other numbers of one case at dynamics=ode, d=300, Delta=0.0, gamma_ratio=0.3, seed=2, time=0.0; got",
    ),
    "outcome": (
        lambda ds: with_outcome(ds, "diverged", ds.seed == 1),
        "^status: other numbers of one case at .*seed=1",
    ),
    "observable": (lambda ds: ds.drop_vars("risk"), "^risk: not recorded in every sweep; .*ds.drop_vars"),
    "times": (lambda ds: ds.isel(time=slice(0, 3)), "^time: sweeps that recorded differently"),
    "clock": (lambda ds: with_attrs(ds, "time", clock="steps"), r"^times: .* got \['ODE time', 'steps'\]"),
    "scale": (lambda ds: with_attrs(ds, "time", scale="p/gamma"), r"^times: .* got \['ODE time', 'ODE time, scale p/g"),
    "units": (lambda ds: with_attrs(ds, "risk", units="km"), r"^risk, units: .* got \['1', 'km'\]"),
    "thresholds": (lambda ds: ds.assign_coords(threshold=[0.5]), "^threshold: sweeps that recorded differently"),
    "stop": (lambda ds: ds.assign_attrs(stop="exit"), r"^stop: sweeps that recorded differently; got \[None, 'exit'\]"),
    "field": (lambda ds: ds.assign_attrs(m0=0.1), r"^m0: not a field of all sweeps; got \[None, 0.1\]"),
    "analysis": (lambda ds: ds.sweep.exit_times(), "not the dataset of a sweep"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_cannot_be_one_is_refused_in_one_line(ds: xr.Dataset, name: str) -> None:
    change, said = CHANGES[name]
    with pytest.raises(InputError, match=said) as refused:
        sweeplib.combine(ds, change(ds))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["clock", "scale", "units"])
def test_sweeps_with_other_units_are_not_compared(ds: xr.Dataset, name: str) -> None:
    change, said = CHANGES[name]
    with pytest.raises(InputError, match=said):
        sweeplib.combine(ds, change(ds), sweep=["one", "other"])


def test_nothing_cannot_be_combined() -> None:
    with pytest.raises(InputError, match="nothing to combine"):
        sweeplib.combine()


def test_a_list_or_a_path_is_not_combined() -> None:
    for other in (["results/scan/dataset.zarr"], "results/scan/dataset.zarr"):
        with pytest.raises(InputError, match=rf"not the dataset of a sweep; got '{type(other).__name__}'"):
            sweeplib.combine(other)
