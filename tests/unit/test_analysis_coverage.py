"""The coverage of intervals of fits, for points on the law and points that scatter around it by 10 %.

The truth is the law around which the points lie: each point's mean deviates from it by a factor exp(τ g), g ~ N(0, 1),
with the misfit τ; the seeds scatter around that. Experiments lie along one axis of a dataset, so that one call of an
analysis covers all of them.
"""

import numpy as np
import pytest
import xarray as xr

from benchmarks.optima import SPACINGS, coverage
from sweeplib import analysis
from sweeplib.analysis.kit.headlines import headline
from sweeplib.contracts.datasets import regime_dataset
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.statistics.estimators import Mean, RestrictedMean
from tests.datasets import sweep_dataset
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
    ds["status"] = xr.ones_like(ds.risk.isel(time=0, drop=True), dtype=np.uint8).assign_attrs(STATUS_LABELS)
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
    ds["status"] = ds.status.astype(np.uint8).assign_attrs(STATUS_LABELS)
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
    found = analysis.optimal_learning_rate(optima(**options)).squeeze()
    truth = true_optimum(30_000, 0.0)
    return float(((found.gamma_opt_low <= truth) & (truth <= found.gamma_opt_high)).mean())


def covered_gains(*, misfit: float, random_seed=0, **options) -> float:
    """Return the coverage of a gain of 3 by `overparametrisation_gain`."""
    narrow, wide = (optima(misfit=misfit, random_seed=random_seed + number, **options) for number in (0, 1))
    wide["exit_steps"], wide["end_steps"] = wide.exit_steps / 3.0, wide.end_steps / 3.0
    ds = xr.concat([narrow.assign_coords(p=1), wide.assign_coords(p=4)], "p", coords=["p"], combine_attrs="override")
    found = analysis.overparametrisation_gain(ds).sel(p=4).squeeze()
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


@pytest.mark.slow
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
        assert 0.91 < covered < 0.991, ("uneven errors", variable)  # 98.7 % without a misfit, 91.8 % at one of 3 %
    for seeds in (16, 64):
        for d in (LONG_RANGE, LONG_RANGE[:4]):
            assert 0.925 < covered_growth(seeds=seeds, misfit=misfit, experiments=4000, d=d) < 0.985, (seeds, d)
        assert 0.925 < covered_optima(seeds=seeds, misfit=misfit, experiments=4000, rates=12) < 0.985, seeds
        assert 0.925 < covered_gains(seeds=seeds, misfit=misfit, experiments=2000, rates=12) < 0.995, seeds
    for name, covered in covered_regimes(seeds=64, misfit=misfit, experiments=2000, d=LONG_RANGE[:6]).items():
        assert covered > 0.91, name  # 92 to 99 %: points are given a departure of 3 % beforehand


UNEQUAL = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of seeds, of which each point of a sweep has another."""
LAWS = {"exponential": lambda rng, shape: rng.exponential(size=shape),
        "lognormal": lambda rng, shape: rng.lognormal(-0.5, 1.0, shape)}  # fmt: skip
"""Laws of passage times of mean 1; the variance of log t of the second is 1."""
MEDIANS = {"exponential": np.log(2.0), "lognormal": np.exp(-0.5)}
MEAN_STEPS = {"d": lambda d: d**1.5, "batch_size": lambda size: 1e5 * size**-0.8,
              "gamma": lambda gamma: 1e3 / (gamma * (1.0 - 6.0 * gamma))}  # fmt: skip
"""Mean exit steps along an axis: powers, and a scan whose least steps are 24 000 at the learning rate 1/12."""
SCAN = np.linspace(0.3, 1.7, 12) / 12


def passage_runs(axis, values, seeds, law, experiments, random_seed=0) -> xr.Dataset:
    """Return runs whose mean exit steps are MEAN_STEPS, with a number of `seeds` or with "unequal" ones."""
    rng, values = np.random.default_rng(random_seed), np.asarray(values)
    order = np.random.default_rng(5).permutation(len(values))
    spread_out = np.array(UNEQUAL)[np.linspace(0, len(UNEQUAL) - 1, len(values)).round().astype(int)[order]]
    counts = spread_out if seeds == "unequal" else np.full(len(values), seeds)
    there = np.arange(counts.max()) < counts[:, None]
    drawn = MEAN_STEPS[axis](values.astype(float))[:, None] * LAWS[law](rng, (experiments, *there.shape))
    dims = ("experiment", axis, "seed")
    steps = xr.DataArray(np.where(there, drawn, np.nan), dims=dims, attrs={"long_name": "exit steps", "units": "1"})
    ds = xr.Dataset({"exit_steps": steps.expand_dims(threshold=[0.5], axis=-1), "end_steps": steps})
    ds = ds.assign(exit_time=ds.exit_steps, end_time=ds.end_steps)
    ds["status"] = (dims, np.broadcast_to(there, drawn.shape).astype(np.uint8), STATUS_LABELS)
    fixed = {"p": 1, "k": 1, "d": 1000, "gamma": 0.1, "Delta": 0.0, "activation": "square", "spherical": True}
    coords = {axis: values, "seed": np.arange(counts.max())} | {k: v for k, v in fixed.items() if k != axis}
    return ds.expand_dims(dynamics=["sgd"]).assign_coords(coords)


def covering(found: xr.Dataset, name: str, truth: float) -> float:
    """Return the part of the intervals of a variable that contain the truth, of those that are known."""
    low, high = (found[f"{name}_{end}"] for end in ("low", "high"))
    return float(((low <= truth) & (truth <= high)).where(low.notnull()).mean())


def covered_passages(seeds, law, experiments) -> dict[str, float]:
    """Return the coverage of the intervals of all analyses of first passages."""
    scan = passage_runs("gamma", SCAN, seeds, law, experiments)
    wide = passage_runs("gamma", SCAN, seeds, law, experiments, random_seed=1)
    wide = wide.assign({name: wide[name] / 3.0 for name in wide if name != "status"})
    both = xr.concat([scan.assign_coords(p=1), wide.assign_coords(p=4)], "p", coords=["p"], combine_attrs="override")
    growth = passage_runs("d", [100, 300, 1000, 3000, 10_000], seeds, law, experiments)
    sizes = passage_runs("batch_size", [1, 6, 32, 178, 1000], seeds, law, experiments)
    optimum = analysis.optimal_learning_rate(scan).squeeze()
    return {
        "optimum": covering(optimum, "gamma_opt", 1 / 12),
        "least steps": covering(optimum, "exit_steps_min", 24_000.0),
        "gain": covering(analysis.overparametrisation_gain(both).sel(p=4), "gain", 3.0),
        "growth": covering(analysis.sample_complexity(growth, resamples=400), "exponent", 1.5),
        "batch size": covering(analysis.batch_tradeoff(sizes, resamples=400), "exponent", -0.8),
    }


@pytest.mark.rest
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seeds", [3, 8, 32, 64])
def test_intervals_of_mean_passage_times_cover(law, seeds):
    """20 000 samples, coverage known to .0016."""
    sample = xr.DataArray(LAWS[law](np.random.default_rng(seeds), (20_000, seeds)), dims=("experiment", "seed"))
    _, low, high = Mean()(sample, 0.95)
    assert 0.945 < float(((low <= 1.0) & (high >= 1.0)).mean()) < 0.99


@pytest.mark.rest
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seeds", [3, 8, 32])
@pytest.mark.parametrize("part", [0.02, 0.2, 0.45, 0.7])
def test_intervals_of_restricted_means_cover_whatever_part_exits(law, seeds, part):
    """10 000 samples, coverage known to .0022; by the scatter alone it was .06 for three seeds of which 2 % exit."""
    drawn = LAWS[law](np.random.default_rng(seeds), (10_000, seeds))
    horizon = xr.DataArray(np.quantile(drawn, part))
    sample = xr.DataArray(drawn, dims=("experiment", "seed")).clip(max=horizon)
    _, low, high = RestrictedMean(horizon, (sample < horizon).sum("seed"))(sample, 0.95)
    assert float(((low <= sample.mean()) & (sample.mean() <= high)).mean()) > 0.94


@pytest.mark.rest
def test_a_point_with_few_seeds_counts_by_its_part():
    """One learning rate of twelve with three seeds, others with 64: the interval is hardly wider than with 64 of all.

    Student's t of two degrees would make it twice as wide; with two seeds the learning rate is left out.
    """
    whole = passage_runs("gamma", SCAN, 64, "exponential", 100)  # of 20 such scans the median is known to a fifth
    widths = {}
    for few in (2, 3, 64):
        ds = whole.where((whole.gamma != SCAN[5]) | (whole.seed < few))
        ds["status"] = ds.exit_steps.squeeze("threshold").notnull().astype(np.uint8).assign_attrs(STATUS_LABELS)
        found = analysis.optimal_learning_rate(ds)
        assert (found.gammas_few == (few == 2)).all()
        widths[few] = float((found.gamma_opt_high - found.gamma_opt_low).median())
    assert widths[3] < 1.4 * widths[64]
    assert widths[2] < 1.4 * widths[64]


@pytest.mark.rest
def test_two_seeds_have_no_interval():
    two = passage_runs("gamma", SCAN, 2, "exponential", 2)
    growth = passage_runs("d", [100, 1000, 10_000], 2, "exponential", 2)
    optimum = analysis.optimal_learning_rate(two)
    assert (optimum.gammas_few == len(SCAN)).all()
    means = analysis.exit_times(two)
    for values in (optimum.gamma_opt_low, analysis.sample_complexity(growth).exponent_low, means.exit_steps_mean_low,
                   means.exit_steps_mean_error, means.exited_fraction_low):  # fmt: skip
        assert values.isnull().all()
    assert means.exit_steps_mean.notnull().all()


def test_two_dimensions_have_an_exponent_without_an_interval():
    ds = passage_runs("d", [100, 1000], 32, "exponential", 3)
    found = analysis.sample_complexity(ds, resamples=50)
    assert found.exponent.notnull().all()
    assert found.exponent_low.isnull().all()
    said = headline(found, "exponent").lines
    assert said == ["exponent of the mean exit steps: no interval at 3 of 3 points; "
                    "it needs 3 dimensions at which three runs or more exited"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "off"), [(8, 0.12), (32, 0.04), (128, 0.01)])
def test_least_steps_lean_to_the_mean_of_a_scan_by_little_of_their_interval(seeds, off):
    """300 scans of exponential exits, the mean of all known to 2, 1 and .5 %; 1/mean alone makes them 12 and 3 % less.

    Eight seeds do not tell that the mean of the scan, 30 % higher, is not the least: a curve that took their minimum
    for true would have too small a one. The intervals say so.
    """
    found = analysis.optimal_learning_rate(passage_runs("gamma", SCAN, seeds, "exponential", 300))
    bias = float(found.exit_steps_min.mean()) - 24_000.0
    assert -0.01 * 24_000.0 < bias < off * 24_000.0
    assert bias < 0.25 * 0.5 * float((found.exit_steps_min_high - found.exit_steps_min_low).median())


@pytest.mark.rest
@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("rates", [12, 24])
def test_curves_have_no_gap_between_their_lengths(rates, spacing):
    """300 scans at shared starts, coverage known to .013: .81 to .94 with lengths of .8 and 2.5 halves of the axis."""
    found = coverage("1/γ + γ²/2", rates, spacing, 64, law="exits", shared=True, scans=300)
    assert found.covered > 0.93
    assert found.half_width < 0.02


@pytest.mark.rest
@pytest.mark.parametrize(
    ("rates", "spacing", "widest"), [(7, "linear", 0.6), (7, "geometric", 0.6), (12, "geometric", 0.15)]
)
def test_steep_ends_of_a_wide_scan_do_not_bend_the_interval(rates, spacing, widest):
    """200 scans from .05 to 3 times the optimum, known to .018: .62 to .83 covered where all rates made the curve."""
    found = coverage("1/γ + γ²/2, a wide scan", rates, spacing, 64, law="exits", shared=True, scans=200)
    assert found.covered > 0.92
    assert found.half_width < widest


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seeds", [3, 8, 32, "unequal"])
def test_intervals_cover_whatever_the_number_of_seeds(seeds, law):
    """1500 experiments, coverage known to .006: 92 to 99 %, and 90 % of the optimum of three seeds (statistics.md)."""
    for name, covered in covered_passages(seeds, law, 1500).items():
        assert (0.9 if seeds == 3 and name == "optimum" else 0.92) < covered < 0.99, name
