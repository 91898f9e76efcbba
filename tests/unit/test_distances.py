"""The distance of a dynamics from published values: as docs/how-to/figures.md defines it, and where it is said."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sweeplib.analysis import ANALYSES
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.kit.distances import Curve, Distance
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.references import References, references
from tests.datasets import sweep_dataset

WHERE = {"d": 3000, "gamma_ratio": 0.9}


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=8, dynamics=["ode", "sgd_chain"])


@pytest.fixture(scope="module")
def analyses(ds: xr.Dataset) -> dict[str, xr.Dataset]:
    return {name: ANALYSES[name](ds) for name in ("averages", "exit_times")}


def at(data: xr.Dataset) -> xr.Dataset:
    """Return the part at the values of WHERE."""
    return data.sel(WHERE, method="nearest")


def csv(path: Path, columns: dict[str, list[object]], comments: str = "# source: my runs\n") -> str:
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text(comments + "\n".join(rows) + "\n")
    return str(path)


def line_distances(ds, analyses, path, **options):
    options = {"y": "risk", "x": "time", "where": WHERE | {"Delta": 0.0}} | options
    return FIGURES["line"].distances(ds, analyses, reference=[path], **options)


@pytest.mark.rest
def test_it_is_that_of_its_definition(ds, analyses, tmp_path):
    """At points of the curve, between them and beyond the last: ratio, χ² with both errors, number of points."""
    curve = at(analyses["averages"]).sel(dynamics="sgd_chain", Delta=0.0)
    t, risk, error = (curve[name].values for name in ("time", "risk", "risk_error"))
    between = np.sqrt(risk[3] * risk[4])
    factors, s = np.array([1.25, 0.8, 1.1]), np.array([error[2], 0.5 * (error[3] + error[4]), error[6]])
    truth = np.array([risk[2], between, risk[6]])
    rows = {
        "time": [t[2], 0.5 * (t[3] + t[4]), t[6], 99.0],
        "risk": [*(truth / factors).tolist(), 1.0],
        "risk_error": [0.1, 0.2, 0.3, 0.1],
    }
    ode, chain = sorted(line_distances(ds, analyses, csv(tmp_path / "mine.csv", rows)), key=lambda each: each.dynamics)
    assert (ode.dynamics, chain.dynamics) == ("ode", "sgd_chain")
    assert (chain.points, chain.places) == (3, 4)
    assert chain.ratio == pytest.approx(np.prod(factors) ** (1 / 3), rel=1e-9)
    assert (chain.least, chain.greatest) == (pytest.approx(0.8), pytest.approx(1.25))
    expected = np.mean((truth - truth / factors) ** 2 / (s**2 + np.array([0.1, 0.2, 0.3]) ** 2))
    assert chain.chi2 == pytest.approx(expected, rel=1e-9)
    assert chain.text == (
        f"SGD (overlap chain) over my runs: ratio {chain.ratio:.3f} (0.800 to 1.250) at 3 of 4 points, "
        f"χ²/n = {expected:.3g}"
    )


def test_a_legend_can_name_the_source_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = Distance(0, "my runs", "ode", 1, 1, 2.0, 2.0, 2.0, np.nan)
    monkeypatch.setattr(References, "distances", lambda *_: [far])
    for comment, said in (("", ["my runs", far.entry]), ("# legend: source\n", ["my runs"])):
        path = csv(tmp_path / "mine.csv", {"time": [1], "risk": [2]}, f"# source: my runs\n{comment}")
        entries = references([path], "time", "risk").entries(xr.Dataset(), Facets({}))
        assert [text for _, text in entries] == said


def test_a_file_that_says_it_is_a_curve_is_read_at_the_points_of_the_dynamics(ds, analyses, tmp_path):
    curve = at(analyses["averages"]).sel(dynamics="ode", Delta=0.0)
    ends = {"time": [0.0, curve.time.values[-1]], "risk": [2.0, 2.0]}
    path = csv(tmp_path / "law.csv", ends, "# source: a law\n# drawn: curve\n")
    [ode] = line_distances(ds, analyses, path, where=WHERE | {"Delta": 0.0, "dynamics": ["ode"]})
    assert (ode.points, ode.places) == (curve.sizes["time"],) * 2
    assert ode.ratio == pytest.approx(np.exp(np.log(curve.risk / 2.0).mean().item()))
    assert ode.chi2 == pytest.approx((((curve.risk - 2.0) / curve.risk_error) ** 2).mean().item())


def test_rows_that_stand_in_several_curves_have_a_distance_from_each(ds, analyses, tmp_path):
    rows = {"time": [0.5, 1.0], "risk": [1.0, 1.0]}
    options = {"where": WHERE | {"dynamics": ["ode"]}, "hue": "Delta"}
    both = line_distances(ds, analyses, csv(tmp_path / "any.csv", rows), **options)
    assert [each.curve for each in both] == ["Delta = 0", "Delta = 1"]
    rows = {"time": [0.5, 1.0], "risk": [1.0, 1.0], "Delta": [0, 1]}
    [pooled] = line_distances(ds, analyses, csv(tmp_path / "own.csv", rows), **options)
    assert (pooled.curve, pooled.points) == ("", 2)
    risk = at(analyses["averages"]).risk.sel(dynamics="ode")
    values = [risk.sel(Delta=noise).sel(time=time, method="nearest").item() for noise, time in ((0.0, 0.5), (1.0, 1.0))]
    assert pooled.ratio == pytest.approx(np.sqrt(np.prod(values)))


def test_rows_of_a_table_are_compared_with_equal_points_alone(tmp_path):
    names, rows = ("gamma", "d"), [(0.05, 300), (0.1, 300), (0.1, 1000)]
    ds = sweep_dataset(seeds=4, dynamics=["sgd_chain"]).isel(Delta=0, gamma_ratio=0, d=0, drop=True)
    ds = ds.expand_dims(point=3).copy(deep=True)
    ds = ds.assign_coords({name: ("point", [row[place] for row in rows]) for place, name in enumerate(names)})
    ds = ds.assign_coords(point=np.arange(3))
    mean = ANALYSES["averages"](ds.assign(risk=ds.risk * xr.DataArray([1.0, 2.0, 4.0], dims="point")))
    last = mean.risk.isel(time=-1).sel(dynamics="sgd_chain")
    own = {"gamma": [0.1, 0.07], "d": [1000, 300], "risk": [last.values[2] / 2.0, 1.0]}
    options = {"y": "risk", "x": "gamma", "reference": [csv(tmp_path / "own.csv", own)]}
    [far] = FIGURES["line"].distances(ds, {"averages": mean}, **options)
    assert far.points == 1 and far.ratio == pytest.approx(2.0)


def test_numbers_that_are_not_positive_have_no_ratio(ds, analyses, tmp_path):
    rows = {"time": [0.0, 0.5], "risk": [-1.0, 1.0], "risk_error": [0.5, ""]}
    [far] = line_distances(
        ds, analyses, csv(tmp_path / "mine.csv", rows), where=WHERE | {"Delta": 0.0, "dynamics": "ode"}
    )
    assert np.isnan(far.ratio) and np.isfinite(far.chi2)
    assert far.text.startswith("ODE over my runs: no ratio at 2 of 2 points, χ²/n = ")


def test_bounds_are_not_compared(ds, analyses, tmp_path):
    exits = analyses["exit_times"].copy(deep=True)
    exits["restricted"][{"d": 0}] = True
    rows = {"d": [300, 3000], "exit_time_mean": [1.0, 1.0]}
    options = {"where": {"gamma_ratio": 0.9, "Delta": 0.0, "dynamics": ["sgd_chain"]}}
    path = csv(tmp_path / "exits.csv", rows)
    chosen = {"exit_times": exits}
    [far] = FIGURES["line"].distances(ds, chosen, y="exit_time", x="d", reference=[path], **options)
    assert (far.points, far.places) == (1, 2)


def test_powers_on_geometric_places_and_exponentials_on_even_ones_are_exact():
    x, nan = np.array([1.0, 10.0, 100.0]), np.full(3, np.nan)
    np.testing.assert_allclose(Curve(x, x**-1.5, nan).at(np.array([3.0, 42.0])).y, np.array([3.0, 42.0]) ** -1.5)
    x = np.array([0.0, 1.0, 2.0])
    found = Curve(x, np.exp(-3.0 * x), nan).at(np.array([-0.1, 0.0, 0.3, 1.9, 2.0, 2.1])).y
    np.testing.assert_allclose(found[1:-1], np.exp(-3.0 * np.array([0.0, 0.3, 1.9, 2.0])))
    assert np.isnan(found[[0, -1]]).all()
    assert np.isnan(Curve(x[:1], x[:1], nan[:1]).at(np.array([1.0])).y).all()


def test_the_legend_names_the_curve_and_says_the_distance(ds, analyses, tmp_path):
    path = csv(tmp_path / "mine.csv", {"time": [0.5, 1.0], "risk": [1.0, 1.0], "risk_error": [0.1, 0.1]})
    for name, options in (("line", {"y": "risk", "x": "time"}), ("risk_curves", {})):
        where = WHERE | {"Delta": 0.0, "dynamics": ["ode"]}
        drawing = FIGURES[name](ds, analyses, where=where, reference=[path], **options)
        texts = [text.get_text() for text in drawing.legends[0].get_texts()]
        assert {"ODE", "my runs"} <= {*texts}
        [far] = [text for text in texts if "over it" in text]
        assert far.startswith("ODE over it: ratio ") and "\nat 2 of 2 points" in far and r"\chi^2/n" in far
