"""The coverage of intervals of fits, for points on the law and points that scatter around it by 10 %.

The truth is the law around which the points lie: each point's mean deviates from it by a factor exp(τ g), g ~ N(0, 1),
with the misfit τ; the seeds scatter around that. Experiments lie along one axis of a dataset, so that one call of an
analysis covers all of them.
"""

import numpy as np
import pytest
import xarray as xr

from sweeplib import analysis
from sweeplib.contracts.datasets import regime_dataset
from tests.datasets import FLAGS, sweep_dataset
from tests.unit.test_analysis_optimal_learning_rate import true_optimum
from tests.unit.test_analysis_sample_complexity import exits

POINTS = {
    "9 points": {"gamma": [0.05, 0.1, 0.2], "d": [100, 400, 1600]},
    "27 points": {"gamma": [0.05, 0.1, 0.2], "d": [100, 400, 1600], "p": [1, 2, 4]},
    "6 points": {"gamma": [0.05, 0.2], "d": [100, 400, 1600]},
    "4 points": {"d": [100, 300, 1000, 3000]},
    "3 points": {"d": [100, 300, 1000]},
}
TRUTH = {"coupling": 0.5, "gamma": 0.5, "d": -0.5, "p": -0.5}


def factors(ds: xr.Dataset, dims: tuple[str, ...], misfit: float, random_seed: int) -> xr.DataArray:
    """Return the factor by which each point deviates from its law."""
    noise = np.random.default_rng(1000 + random_seed).standard_normal([ds.sizes[dim] for dim in dims])
    return xr.DataArray(np.exp(misfit * noise), dims=dims)


def deviations(
    points, *, seeds: int, misfit: float, shared: float, noise, experiments: int, random_seed=0
) -> xr.Dataset:
    """Return runs whose largest deviation from the ODE is √(γ/(pd)) times misfit and log-normal noise.

    A part of the noise is `shared` by the runs of a seed at all points.
    """
    rng = np.random.default_rng(random_seed)
    axes = {
        name: xr.DataArray(values, dims=name)
        for name, values in ({"gamma": [0.1], "d": [100], "p": [1]} | points).items()
    }
    size = np.sqrt(axes["gamma"] / (axes["d"] * axes["p"])).expand_dims(experiment=experiments)
    size = size * factors(size.to_dataset(name="size"), size.dims, misfit, random_seed)
    common = rng.standard_normal((experiments, 1, 1, 1, seeds))
    own = rng.standard_normal((*size.shape, seeds))
    kicks = xr.DataArray(np.sqrt(shared) * common + np.sqrt(1 - shared) * own, dims=(*size.dims, "seed"))
    scale = noise * (xr.ones_like(size) if isinstance(noise, float) else 1.0)
    shown = xr.DataArray([0.0, 1.0], dims="time") * xr.DataArray([0.0, 1.0], dims="dynamics")
    risk = 2.0 + size * np.exp(scale * kicks - scale**2 / 2) * shown
    ds = xr.Dataset({"risk": risk.assign_attrs(long_name="population risk", units="1", symbol="R")})
    ds["status"] = xr.ones_like(ds.risk.isel(time=0, drop=True), dtype=np.uint8).assign_attrs(FLAGS)
    return ds.assign_coords(axes | {"dynamics": ["ode", "sgd"], "seed": np.arange(seeds), "time": [0.0, 1.0]})


def covered_powers(points, resamples=500, **options) -> dict[str, float]:
    """Return the coverage of the exponents of `deviation_scaling`, by variable."""
    found = analysis.deviation_scaling(deviations(points, **options), resamples=resamples).squeeze("dynamics")
    held = {
        name: (found.risk_exponent_low <= truth) & (truth <= found.risk_exponent_high) for name, truth in TRUTH.items()
    }
    known = found.risk_exponent.notnull().any("experiment")
    return {name: float(held[name].sel(variable=name).mean()) for name in TRUTH if bool(known.sel(variable=name))}


def covered_growth(*, seeds: int, misfit: float, experiments: int, d, random_seed=0) -> float:
    """Return the coverage of the exponent of n ∝ d² by `sample_complexity`."""
    ds = exits(3, 0.0, 0.05, d=d, seeds=seeds * experiments, random_seed=random_seed).isel(gamma_ratio=0, Delta=0)
    ds = ds.coarsen(seed=seeds).construct(seed=("experiment", "seed"))
    off = factors(ds, ("experiment", "d"), misfit, random_seed)
    ds["exit_steps"], ds["end_steps"] = ds.exit_steps * off, ds.end_steps * off
    ds["status"] = ds.status.astype(np.uint8).assign_attrs(FLAGS)
    found = analysis.sample_complexity(ds.assign_coords(seed=np.arange(seeds)), resamples=500).squeeze()
    return float(((found.exponent_low <= 2.0) & (found.exponent_high >= 2.0)).mean())


def covered_regimes(*, seeds: int, misfit: float, experiments: int, d, random_seed=0) -> dict[str, float]:
    """Return the coverage of the exponents with which `regimes` classifies δ = ½."""
    parts = [
        regime_dataset([0.5], (0.0,), d, seeds=seeds, random_seed=random_seed + number) for number in range(experiments)
    ]
    ds = xr.concat(parts, "experiment", combine_attrs="override", coords="minimal", compat="override")
    dims = ("experiment", "d")
    sgd = ds.dynamics == "sgd_chain"
    flow = ds.risk.sel(dynamics="gradient_flow", drop=True)
    risk = flow + (ds.risk - flow) * factors(ds, dims, misfit, random_seed).where(sgd, 1.0)
    growth = 0.3 + (np.log(ds.student_norm) - 0.3) * factors(ds, dims, misfit, random_seed + 1).where(sgd, 1.0)
    last = ds.time == 1.0
    ds = ds.assign(risk=risk.where(last, ds.risk).transpose(*ds.risk.dims))
    ds["student_norm"] = np.exp(growth).where(last & sgd, ds.student_norm).transpose(*ds.risk.dims)
    found = analysis.regimes(ds, resamples=500).squeeze()
    names = ("excess_risk", "noise_weight", "deviation")
    held = {
        name: (found[f"{name}_exponent_low"] <= found[f"{name}_exponent_theory"])
        & (found[f"{name}_exponent_theory"] <= found[f"{name}_exponent_high"])
        for name in names
    }
    return {name: float(value.mean()) for name, value in held.items()}


def optima(*, seeds: int, misfit: float, experiments: int, rates: int, random_seed=0) -> xr.Dataset:
    """Return scans of the learning rate at d = 30 000, with steps that deviate from their law by the misfit."""
    ratios = np.linspace(0.4, 1.6, rates)
    ds = sweep_dataset(
        ratios=ratios, d=[30_000], Delta=np.arange(experiments) * 1e-9, seeds=seeds, dynamics=["sgd_chain"],
        random_seed=random_seed,
    )  # fmt: skip
    gamma = ds.gamma.isel(Delta=0, drop=True)
    ds = ds.drop_vars(["gamma", "Delta"]).rename(Delta="experiment").assign_coords(gamma=gamma, Delta=0.0)
    off = factors(ds, ("experiment", "gamma_ratio"), misfit, random_seed)
    steps, ends = ds.exit_steps * off, ds.end_steps * off
    ds["exit_steps"] = steps.transpose(*ds.exit_steps.dims).assign_attrs(ds.exit_steps.attrs)
    ds["end_steps"] = ends.transpose(*ds.end_steps.dims).assign_attrs(ds.end_steps.attrs)
    return ds


def covered_optima(**options) -> float:
    """Return the coverage of the optimum by `optimal_learning_rate`."""
    found = analysis.optimal_learning_rate(optima(**options), resamples=400).squeeze()
    truth = true_optimum(30_000, 0.0)
    return float(((found.gamma_opt_low <= truth) & (truth <= found.gamma_opt_high)).mean())


def covered_gains(*, misfit: float, random_seed=0, **options) -> float:
    """Return the coverage of a gain of 3 by `overparametrisation_gain`."""
    narrow, wide = (optima(misfit=misfit, random_seed=random_seed + number, **options) for number in (0, 1))
    wide["exit_steps"], wide["end_steps"] = wide.exit_steps / 3.0, wide.end_steps / 3.0
    ds = xr.concat([narrow.assign_coords(p=1), wide.assign_coords(p=4)], "p", coords=["p"], combine_attrs="override")
    found = analysis.overparametrisation_gain(ds, resamples=400).sel(p=4).squeeze()
    return float(((found.gain_low <= 3.0) & (found.gain_high >= 3.0)).mean())


SEEDS = {
    "few seeds": {"seeds": 24, "noise": 0.4, "shared": 0.0},
    "shared seeds": {"seeds": 64, "noise": 0.3, "shared": 0.8},
}
LONG_RANGE = [100, 300, 1000, 3000, 10_000, 30_000, 100_000]


@pytest.mark.slow
@pytest.mark.parametrize("misfit", [pytest.param(0.0, marks=pytest.mark.long), 0.1])
@pytest.mark.parametrize("seeds", SEEDS)
def test_intervals_of_powers_cover(seeds, misfit):
    """200 experiments of 9 points. Of 95 % intervals 88 % or fewer cover once in 10⁵; 50 to 75 % without the misfit."""
    for covered in covered_powers(POINTS["9 points"], **SEEDS[seeds], misfit=misfit, experiments=200).values():
        assert 0.88 < covered < 0.9975


@pytest.mark.parametrize("misfit", [pytest.param(0.0, marks=pytest.mark.long), 0.1])
def test_intervals_of_growth_cover(misfit):
    """200 experiments, as above: 52 % without the misfit."""
    assert 0.88 < covered_growth(seeds=64, misfit=misfit, experiments=200, d=LONG_RANGE) < 0.9975


@pytest.mark.slow
@pytest.mark.parametrize("misfit", [pytest.param(0.0, marks=pytest.mark.long), 0.1])
def test_intervals_of_optima_and_gains_cover(misfit):
    """150 scans of 10 learning rates, as above: 54 and 57 % without the misfit."""
    for covered in (covered_optima, covered_gains):
        assert 0.86 < covered(seeds=64, misfit=misfit, experiments=150, rates=10) < 0.9985


@pytest.mark.slow
def test_intervals_of_exponents_of_regimes_cover():
    """100 experiments: of 95 % intervals 85 % or fewer cover once in 10⁴."""
    found = covered_regimes(seeds=64, misfit=0.1, experiments=100, d=(100, 200, 500, 1000, 3000, 10_000))
    assert min(found.values()) > 0.85


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("misfit", [0.0, 0.03, 0.1, 0.3])
def test_intervals_cover_whatever_the_misfit(misfit):
    """4000 experiments each, coverage known to .0034: 92.5 to 98.5 %, unless stated otherwise."""
    uneven = {"seeds": 32, "noise": xr.DataArray([0.1, 0.2, 0.4], dims="d"), "shared": 0.0}
    for options in (*SEEDS.values(), {"seeds": 64, "noise": 0.3, "shared": 0.0}):
        for name, points in POINTS.items():
            found = covered_powers(points, **options, misfit=misfit, experiments=4000)
            for variable, covered in found.items():
                assert 0.925 < covered < (0.995 if name == "3 points" else 0.985), (name, options, variable)
    for variable, covered in covered_powers(POINTS["9 points"], **uneven, misfit=misfit, experiments=4000).items():
        assert 0.91 < covered < 0.985, ("uneven errors", variable)  # 91.8 % at a misfit of 3 %
    for seeds in (16, 64):
        for d in (LONG_RANGE, LONG_RANGE[:4]):
            assert 0.925 < covered_growth(seeds=seeds, misfit=misfit, experiments=4000, d=d) < 0.985, (seeds, d)
        assert 0.925 < covered_optima(seeds=seeds, misfit=misfit, experiments=4000, rates=12) < 0.985, seeds
        assert 0.925 < covered_gains(seeds=seeds, misfit=misfit, experiments=2000, rates=12) < 0.995, seeds
    for name, covered in covered_regimes(seeds=64, misfit=misfit, experiments=2000, d=LONG_RANGE[:6]).items():
        assert covered > 0.91, name  # 92 to 99 %: points are given a departure of 3 % beforehand
