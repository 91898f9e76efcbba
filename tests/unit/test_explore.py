"""The interactive plot of a dataset of any size: its numbers are those of the analyses, its page is for its reader."""

import socket
import sys
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import sweeplib.accessor  # noqa: F401 - `ds.sweep`
from sweeplib.analysis import ANALYSES
from sweeplib.commands.cli import app
from sweeplib.engine.execution.live.graph import COLOURS, ResultCurve, ResultCurves, _bands, _ends, _log_ticks, _points
from sweeplib.errors import InputError
from sweeplib.pictures.report.explore import MOST_POINTS, Explored, coloured, curves, horizontal, quantities
from tests.datasets import sweep_dataset, timed_out, with_outcome


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    whole = sweep_dataset(seeds=8)
    lost = (whole.gamma_ratio > 1.0) & (whole.seed == 2)
    return with_outcome(whole.assign(risk=whole.risk.where(~lost)), "diverged", lost)


def middle(ds: xr.Dataset, name: str, *drawn: str) -> dict[str, int]:
    """Return the middle places on axes, but the first dynamics, which ran everywhere."""
    return {
        str(dim): 0 if dim == "dynamics" else ds.sizes[dim] // 2 for dim in ds[name].dims if dim not in ("seed", *drawn)
    }


@pytest.mark.rest
@pytest.mark.parametrize("horizon", [np.inf, 2000.0])
def test_exits_are_the_medians_of_the_analysis(ds: xr.Dataset, horizon: float) -> None:
    """Also where runs were stopped, and where some diverged."""
    ds = timed_out(ds, horizon)
    at = middle(ds, "exit_steps", "gamma_ratio", "dynamics")
    found, _ = curves(ds, "exit_steps", "gamma_ratio", "dynamics", at)
    exits = ANALYSES["exit_times"](ds).isel(at)
    assert len(found.of) == ds.sizes["dynamics"] and found.y.startswith("Median ")
    for place, curve in enumerate(found.of.values()):
        own = exits.isel(dynamics=place)
        assert curve.x == ds.gamma_ratio.values.tolist()
        for name, values in (("", curve.y), ("_low", curve.low), ("_high", curve.high)):
            np.testing.assert_array_equal(values, own[f"exit_steps_median{name}"].values)
        assert curve.runs == own.seeds_used.values.tolist()


def test_observables_are_the_averages_of_the_analysis(ds: xr.Dataset) -> None:
    """A point of which a run diverged has no mean; the page says how many these are."""
    at = middle(ds, "risk", "time") | {"gamma_ratio": 0}
    found, said = curves(ds, "risk", "time", None, at)
    means = ANALYSES["averages"](ds).isel(at)
    [curve] = found.of.values()
    np.testing.assert_array_equal(curve.y, means.risk.values)
    np.testing.assert_array_equal(curve.low, means.risk_low.values)
    np.testing.assert_array_equal(curve.high, means.risk_high.values)
    assert said == "" and ", ".join(f"{dim} = " for dim in at)[:5] in found.at
    over_gamma, said = curves(ds, "risk", "gamma", None, middle(ds, "risk", "gamma_ratio"))
    [curve] = over_gamma.of.values()
    missing = int(np.isnan(curve.y).sum())
    assert 0 < missing == int((ds.gamma_ratio > 1.0).sum()) and said.startswith(
        f"{missing} of {ds.sizes['gamma_ratio']} points"
    )


def test_values_that_agree_in_six_digits_have_a_curve_each(ds: xr.Dataset) -> None:
    """The last of them was drawn under their common text."""
    close = [1.0000001, 1.0000002, *range(2, ds.sizes["gamma_ratio"])]
    ds = ds.assign_coords(gamma_ratio=close)
    found, _ = curves(ds, "exit_steps", "d", "gamma_ratio", middle(ds, "exit_steps", "d", "gamma_ratio"))
    assert list(found.of)[:3] == ["1.0000001", "1.0000002", "2"] and len(found.of) == len(close)


def test_more_curves_than_colours_have_other_markers() -> None:
    """The ninth looked as the first, in the legend too."""
    of = {str(at): ResultCurve([1.0], [1.0], [0.5], [2.0], [3]) for at in range(3 * len(COLOURS))}
    drawn = _points(ResultCurves("x", "y", "", of=of), (-np.inf, np.inf))
    assert len(set(zip(drawn["colour"], drawn["marker"], strict=True))) == len(of)


@pytest.mark.parametrize("log", [False, True])
def test_intervals_without_an_end_on_the_axis_go_beyond_all_that_is_drawn(log: bool) -> None:
    """Bokeh leaves out a bar with an infinite end, or one below zero on a logarithmic axis: the point looked exact."""
    low, high = [-1.0 if log else -np.inf, 2.0, np.nan], [100.0, np.inf, np.nan]
    curves = ResultCurves("x", "y", "", of={"": ResultCurve([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], low, high, [3] * 3)})
    ends = _ends(curves, log)
    bars = _points(curves, ends)
    assert (0.0 < ends[0] < 2.0) if log else (-np.inf < ends[0] < 2.0)
    assert 100.0 < ends[1] < np.inf
    np.testing.assert_array_equal(bars["from"], [ends[0], 2.0, np.nan])
    np.testing.assert_array_equal(bars["to"], [100.0, ends[1], np.nan])
    np.testing.assert_array_equal(bars["high"], high)  # what a reader is told
    assert _bands(curves, ends)["ys"][0].tolist() == [ends[0], 2.0, ends[1], 100.0]


def test_long_axes_are_thinned_and_the_page_says_so() -> None:
    ds = sweep_dataset(seeds=3)
    long = ds.isel(time=np.arange(3 * MOST_POINTS) % ds.sizes["time"]).assign_coords(time=np.arange(3.0 * MOST_POINTS))
    found, said = curves(long, "risk", "time", None, middle(long, "risk", "time"))
    [curve] = found.of.values()
    assert curve.x == np.arange(0.0, 3 * MOST_POINTS, 3).tolist() and said == " One of 3 values of time is drawn."


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([0.01, 0.05, 0.1, 0.5, 1.0], True), ([0.1, 0.2, 0.3], False), ([0.0, 0.1, 1.0], False)]
)
def test_an_axis_is_logarithmic_where_that_of_the_picture_is(
    ds: xr.Dataset, values: list[float], logarithmic: bool
) -> None:
    ds = ds.isel(gamma_ratio=slice(len(values))).assign_coords(gamma_ratio=values)
    found, _ = curves(ds, "exit_steps", "gamma_ratio", "dynamics", middle(ds, "exit_steps", "gamma_ratio", "dynamics"))
    assert found.log_x is logarithmic
    ticks, _ = _log_ticks(found)
    assert ticks[0] == 0.001 if logarithmic else not ticks


def test_axes_that_can_be_chosen(ds: xr.Dataset) -> None:
    assert quantities(ds)[0] == "risk" and {"exit_steps", "end_steps"} <= set(quantities(ds))
    asked = ds.assign_coords(round=ds.status.isel(seed=0, drop=True) * 0)
    assert horizontal(asked, "risk")[0] == "time" and not {"seed", "round"} & set(horizontal(asked, "risk"))
    assert coloured(ds.risk, "gamma_ratio")[0] == "dynamics"
    with pytest.raises(InputError, match="nothing to draw in the dataset"):
        ds.drop_vars(quantities(ds)).sweep.explore(show=False)


def answer(address: str) -> int:
    try:
        with urllib.request.urlopen(address) as found:
            return int(found.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.rest
def test_the_page_is_on_this_machine_at_an_address_that_nobody_guesses(ds: xr.Dataset) -> None:
    page = ds.sweep.explore(show=False)
    try:
        base, _, token = page.address.rpartition("/")
        assert base.startswith("http://127.0.0.1:") and len(token) == 16
        assert answer(page.address) == 200 and answer(base) == answer(f"{base}/other") == 404
        with urllib.request.urlopen(page.address) as found:
            assert "synthetic: explore" in found.read().decode()
        port = int(base.rpartition(":")[2])
        with socket.socket() as probe:  # it listens on one address alone
            probe.bind(("127.0.0.2", port))
        with pytest.raises(InputError, match=f"the port cannot be used: .*{port}"):
            ds.sweep.explore(show=False, port=port)
        other = ds.sweep.explore(show=False)
        assert other.address != page.address and answer(other.address) == 200
        other.close()
    finally:
        page.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page.address)


def test_a_server_that_cannot_be_imported_is_an_error_and_no_wait_without_end(
    ds: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.server.server", None)
    with pytest.raises(ImportError):
        Explored(ds, "scan")


@pytest.mark.rest
def test_the_command_prints_the_address_and_opens_it(
    ds: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    monkeypatch.setattr(Explored, "wait", lambda page: page.close())
    path = tmp_path / "scan" / "dataset.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names in zarr
        ds.to_zarr(path)
    for options, opened in (([], 1), (["--no-show"], 0)):
        found = CliRunner().invoke(app, ["explore", str(path), *options])
        assert found.exit_code == 0, found.output
        assert found.output.startswith("http://127.0.0.1:") and len(seen) == opened
        seen.clear()
    found = CliRunner().invoke(app, ["explore", str(tmp_path / "nothing.yaml")])
    assert found.exit_code == 2 and len(found.output.splitlines()) == 1
