"""Theory in results: it is given where all of its hypotheses hold, and nowhere else."""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.errors import InputError
from sweeplib.networks import theory
from sweeplib.pictures import figures
from sweeplib.pictures.figures import FIGURES
from sweeplib.pictures.figures.learning_rate_scan import OPTIMA
from tests.datasets import sweep_dataset
from tests.tiers import slow_but

FLOOR, OPTIMUM, EXITS = "floor", "optimum", "exits"
ALL = {FLOOR, OPTIMUM, EXITS}
HYPOTHESES = [
    ({}, ALL),
    ({"teacher_activation": "square", "a": 1.0, "a_star": "[1.0]", "second_layer_rate": 0.0, "start": "sphere"}, ALL),
    ({"teacher_start": "sphere"}, ALL),
    ({"teacher_start": "gaussian"}, set()),
    ({"second_layer_rate": 1.0}, set()),
    ({"m0": 0.5}, {FLOOR}),
    ({"m0": 0.0}, set()),
    ({"activation": "he2"}, set()),
    ({"teacher_activation": "he2"}, set()),
    ({"k": 2}, set()),
    ({"spherical": False}, set()),
    ({"a": 0.5}, set()),
    ({"a": "[0.5]"}, set()),
    ({"a_star": 2.0}, set()),
    ({"p": 4}, {OPTIMUM, EXITS}),
]


@pytest.fixture(scope="module")
def ds() -> xr.Dataset:
    return sweep_dataset(seeds=8, d=[3000, 100_000], Delta=[1.0], dynamics=["ode", "sgd_chain"])


@pytest.mark.rest
@pytest.mark.parametrize(
    ("fields", "stands"),
    slow_but(HYPOTHESES, *HYPOTHESES[1:3], HYPOTHESES[-1]),
    ids=[str(fields) for fields, _ in HYPOTHESES],
)
def test_theory_stands_where_its_hypotheses_hold(ds, fields, stands):
    changed = ds.assign_coords(fields)
    optima = analysis.optimal_learning_rate(changed)
    assert bool(optima.gamma_opt_theory.notnull().all()) == (OPTIMUM in stands)
    assert bool(optima.gamma_opt_noise_corrected.notnull().any()) == (OPTIMUM in stands)
    assert bool(analysis.risk_floor(changed).risk_floor_theory.notnull().all()) == (FLOOR in stands)
    exits = {"exit_times": analysis.exit_times(changed), "optimal_learning_rate": optima}
    for name, variable in (("exit_time_scaling", "exit_time_theory"), ("learning_rate_scan", "exit_steps_theory")):
        drawn = FIGURES[name].declared(changed, exits).labelled(changed, exits)
        assert (variable in drawn and bool(drawn[variable].notnull().any())) == (EXITS in stands)
    every = {"theories": ("annealed", "quenched", "noise-corrected")}
    for choice, count in ((every, 3), ({}, 2), ({"theories": ()}, 0)):
        drawing = figures.exit_time_scaling(changed, exits, where={"gamma_ratio": 0.9}, **choice)
        curves = [line for line in drawing.axes[0].lines if len(line.get_xdata()) == 200]
        assert len(curves) == (count if EXITS in stands else 0)
    assert ("survival_theory" in FIGURES["exit_time_distributions"].declared(changed, {}).labelled(changed, {})) == (
        EXITS in stands
    )
    if "p" not in fields:
        gain = analysis.overparametrisation_gain(changed)
        assert bool(gain.gain_limit.notnull().all()) == (OPTIMUM in stands)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("fields", "stands"),
    slow_but(HYPOTHESES[:6], *HYPOTHESES[1:3]),
    ids=[str(fields) for fields, _ in HYPOTHESES[:6]],
)
def test_learning_rates_are_in_units_of_theory_where_it_stands(ds, fields, stands):
    drawing = figures.exited_fraction(ds.assign_coords(fields))
    assert (r"\gamma_{\mathrm{opt}}" in drawing.axes[0].get_xlabel()) == (OPTIMUM in stands)


@pytest.mark.rest
def test_exit_times_are_no_theory_where_the_students_align(ds):
    """p = 2: the formula holds below γ = p²/8, tested at .8 and 1.2 times that."""
    wide = ds.assign_coords(p=2, gamma=("gamma_ratio", np.linspace(0.8, 1.2, 8) * 0.5), Delta=[0.0])
    exits = {"exit_times": analysis.exit_times(wide), "optimal_learning_rate": analysis.optimal_learning_rate(wide)}
    drawn = (
        FIGURES["learning_rate_scan"]
        .declared(wide, exits)
        .labelled(wide, exits)
        .exit_steps_theory.sel(dynamics="ode", d=3000)
    )
    np.testing.assert_array_equal(drawn.notnull().squeeze(), wide.gamma < 0.5)
    curve = figures.learning_rate_scan(wide, exits, where={"d": 3000}).axes[0].lines
    steps = next(line for line in curve if len(line.get_xdata()) == 200)
    unit = theory.optimal_learning_rate(2, 0.0)
    assert np.nanmax(np.where(np.isfinite(steps.get_ydata()), steps.get_xdata() * unit, np.nan)) < 0.5


@pytest.mark.rest
def test_each_dynamics_has_its_own_theory(ds):
    """SGD has the theory with noise, the ODE that without, gradient flow that of γ → 0, dynamics of plugins none."""
    names = ["sgd_chain", "ode", "gradient_flow"]
    runs = xr.concat([ds.sel(dynamics=name) for name in ("sgd_chain", "ode", "ode")], "dynamics")
    runs = runs.assign_coords(dynamics=names, Delta=ds.Delta, gamma=ds.gamma)
    runs.status.attrs = ds.status.attrs
    exits = {"exit_times": analysis.exit_times(runs)}
    found = (
        FIGURES["exit_time_scaling"]
        .declared(runs, exits)
        .labelled(runs, exits)
        .exit_time_theory.sel(d=3000, Delta=1.0)
        .squeeze()
    )
    of = 1, 3000, 1.0, 0.01
    np.testing.assert_allclose(found.sel(dynamics="sgd_chain"), theory.noise_corrected_exit_time(found.gamma, *of))
    np.testing.assert_allclose(found.sel(dynamics="ode"), theory.quenched_exit_time(found.gamma, *of))
    np.testing.assert_allclose(found.sel(dynamics="gradient_flow"), theory.quenched_exit_time(0.0, *of))
    optima = analysis.optimal_learning_rate(runs)
    expected = OPTIMA.labelled(runs, {"optimal_learning_rate": optima})
    expected = expected.gamma_opt_expected.sel(d=3000, Delta=1.0).squeeze()
    assert expected.sel(dynamics="ode") == pytest.approx(float(theory.exact_optimal_learning_rate(3000, 1.0, 0.01)))
    assert expected.sel(dynamics="ode") == pytest.approx(1 / 13, rel=1e-3)
    assert expected.sel(dynamics="sgd_chain") > 1 / 13
    assert np.isnan(expected.sel(dynamics="gradient_flow"))


def test_a_scan_along_which_the_problem_changes_is_refused(ds):
    zipped = ds.assign_coords(m0=("gamma_ratio", np.linspace(0.1, 0.5, 8)))
    with pytest.raises(InputError, match="along: not a scan at a fixed problem; got 'gamma_ratio'; expected m0 fixed"):
        analysis.optimal_learning_rate(zipped)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("change", "stands"),
    [
        ({}, True),
        ({"spherical": True}, False),
        ({"second_layer_rate": 0.5}, False),
        ({"gamma": lambda ds: 0.1 * ds.gamma}, True),
        ({"gamma": lambda ds: ds.gamma * ds.d**0.1}, False),
        ({"p": lambda ds: (2.0 * ds.d**ds.kappa).round() + 40}, False),
    ],
    ids=["as it should be", "sphere", "trained", "other prefactor", "other exponent", "other width"],
)
def test_regimes_of_theory_need_its_scaling(change, stands):
    ds = regime_dataset((-1.0, 0.5), (0.25,), (100, 1000, 10_000))
    found = analysis.regimes(
        ds.assign_coords({name: value(ds) if callable(value) else value for name, value in change.items()}),
        resamples=100,
    )
    assert (found.regime_theory > 0).all() == stands
    assert found.deviation_exponent_theory.notnull().all() == stands
