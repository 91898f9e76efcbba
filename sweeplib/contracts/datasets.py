"""Synthetic datasets of finished sweeps, labelled as `finalise` labels them, drawn from laws whose truth is known.

They are the datasets on which analyses and figures are checked.

Phase retrieval at p = 1: a run leaves at t = log(T d/μ + 1 − T)/(2 ω_M), μ = (g + √s h)², g and h standard normal, s
the strength of the noise of SGD: the noise-corrected law of the theory. The ODE has s = 0.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from sweeplib.analysis.kit.labels import relabelled
from sweeplib.engine.status import STATUS_LABELS, Status
from sweeplib.networks.simulation.labels import time_attributes
from sweeplib.networks.theory.regimes import deviation_exponent, excess_risk_exponent
from sweeplib.networks.views import QUANTILES

LABELS = {
    "exit_steps": ("steps to the exit", r"\nu_{\mathrm{ext}}"),
    "exit_time": ("exit time", r"t_{\mathrm{ext}}"),
    "end_steps": ("last step simulated", r"\nu_{\mathrm{end}}"),
    "end_time": ("last time simulated", r"t_{\mathrm{end}}"),
}
"""Long names and symbols of exits and ends; those of other variables are the library's (`relabelled`)."""
FIXED = {"p": 1, "k": 1, "activation": "square", "spherical": 1}
"""The constants of most datasets."""


def sweep_dataset(
    *,
    ratios: Sequence[float] = tuple(np.linspace(0.3, 1.7, 8)),
    d: Sequence[int] = (300, 3000),
    Delta: Sequence[float] = (0.0, 1.0),
    seeds: int = 16,
    thresholds: Sequence[float] = (0.01,),
    dynamics: Sequence[str] = ("ode", "sgd", "sgd_chain"),
    horizon: float = np.inf,
    derived: bool = True,
    paired: bool = False,
    random_seed: int = 0,
) -> xr.Dataset:
    """Return a sweep over γ = gamma_ratio/(12 + Δ) if `derived`, else over γ = ratio/12; `sgd` at the smallest d only.

    ratios, d, Delta : the axes. horizon : the ODE time at which runs end. paired : whether all γ share their starts.
    """
    rng = np.random.default_rng(random_seed)
    scan = "gamma_ratio" if derived else "gamma"
    names = ["d", "Delta", "gamma_ratio"] if derived else ["gamma", "d", "Delta"]
    values = {"d": d, "Delta": Delta, scan: ratios if derived else np.asarray(ratios) / 12}
    axes = {name: xr.DataArray(list(values[name]), dims=name) for name in names}
    gamma = axes[scan] / (12 + axes["Delta"]) if derived else axes[scan]
    dims = ("dynamics", *names, "seed", "threshold")
    shape = (len(dynamics), *(len(values[name]) for name in names), seeds, 1)
    chain = xr.DataArray([name != "ode" for name in dynamics], dims="dynamics")
    mu = xr.DataArray(_start(rng, shape, paired, scan, dims), dims=dims)
    kick = xr.DataArray(_start(rng, shape, paired, scan, dims), dims=dims)

    rate = 4.0 * (1.0 - gamma * (6.0 + axes["Delta"] / 2.0))
    noise = gamma * (48.0 + 4.0 * axes["Delta"]) / (2.0 * rate) * chain
    start = (mu + np.sqrt(noise) * kick) ** 2 / axes["d"]
    T = xr.DataArray(list(thresholds), dims="threshold")
    start = start.isel(threshold=0, drop=True)
    time: xr.DataArray = np.log(np.maximum(T / start + 1.0 - T, 1.0)) / (2.0 * rate)  # type: ignore[assignment]
    end = xr.full_like(start, min(horizon, 1.5 * float(time.max())))
    pace = axes["d"] / gamma
    grid = np.linspace(0.0, 2.0, 21)
    growth = start * np.exp(2.0 * rate * xr.DataArray(grid, dims="time"))
    ds = xr.Dataset(
        {
            "exit_time": time.where(time <= end),
            "exit_steps": (time * pace).where(time <= end),
            "end_time": end,
            "end_steps": end * pace,
            "risk": 2.0 / (1.0 + growth) + gamma * axes["Delta"] / (1.0 - 6.0 * gamma),
        },
        coords=axes
        | {"seed": np.arange(seeds), "threshold": list(thresholds), "time": grid, "dynamics": list(dynamics)},
    ).assign_attrs(FIXED)
    ds["status"] = xr.ones_like(end, dtype=np.uint8)
    planned = (ds.dynamics != "sgd") | (ds.d == min(d))
    ds = ds.where(planned, xr.Dataset({name: np.nan for name in ds if name != "status"} | {"status": np.uint8(0)}))
    ds["status"] = ds.status.astype(np.uint8)
    ds = ds.transpose("dynamics", *names, "seed", "threshold", "time")
    if derived:
        ds = ds.assign_coords(gamma=gamma.transpose(*[n for n in names if n in gamma.dims]))
        ds.gamma.attrs["formula"] = "gamma_ratio / (12 + Delta)"
    return labelled(ds)


def _start(
    rng: np.random.Generator, shape: tuple[int, ...], paired: bool, scan: str, dims: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return standard normal numbers of a shape, over `dims`; if `paired`, the same along the axis `scan`."""
    drawing = [1 if paired and name == scan else size for name, size in zip(dims, shape, strict=True)]
    return np.broadcast_to(rng.standard_normal(drawing), shape)


def labelled(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset with the labels of its variables, as `finalise` writes them."""
    for name in LABELS.keys() & ds.variables.keys():
        ds.variables[name].attrs |= dict(zip(("long_name", "symbol"), LABELS[name], strict=True)) | {"units": "1"}
    return relabelled(ds).assign_attrs(title="synthetic")


def giant_steps_dataset(
    *,
    batch_size: Sequence[int] = (1, 10, 100, 1000),
    seeds: int = 8,
    steps: int = 6,
    directions: int = 3,
    slope: float = -1.0,
    dynamics: Sequence[str] = ("sgd", "dmft"),
    random_seed: int = 0,
) -> xr.Dataset:
    """Return a sweep over the batch size: direction r is learned at step r, exits take 10⁴ n_b^slope steps.

    The last direction stays at its first cosine, about 0.05. Times are in units of a step, its `stride`.
    """
    rng = np.random.default_rng(random_seed)
    names = ("dynamics", "batch_size", "seed", "time", "teacher")
    when, r = np.meshgrid(np.arange(steps + 1), np.arange(1, directions + 1), indexing="ij")
    learned = (when >= r) & (r < directions)
    shape = (len(dynamics), len(batch_size), seeds, *learned.shape)
    cosine = np.where(learned, 0.8, 0.05) * (1.0 + 0.1 * rng.standard_normal(shape))
    exits = 1e4 * np.array(batch_size, float)[:, None] ** slope * rng.gamma(25.0, 1 / 25.0, shape[:3])
    risk = cosine[..., 0] ** 2
    ds = xr.Dataset(
        {
            "exit_steps": ((*names[:3], "threshold"), exits[..., None]),
            "exit_time": ((*names[:3], "threshold"), exits[..., None]),
            "end_steps": (names[:3], exits),
            "end_time": (names[:3], exits),
            "risk": (names[:4], risk),
            "subspace_cosine": (names, cosine),
            "status": (names[:3], np.ones(shape[:3], np.uint8)),
        },
        coords={
            "dynamics": list(dynamics), "batch_size": list(batch_size), "seed": np.arange(seeds),
            "time": np.arange(steps + 1.0), "threshold": [0.5],
        },
    ).assign_attrs(FIXED | {"d": 1000, "gamma": 1000.0, "Delta": 0.0, "k": directions, "stride": 1.0})  # fmt: skip
    ds = labelled(ds)
    ds["time"].attrs = time_attributes(None, "stride")
    return ds


def norms_dataset(*, p: Sequence[int] = (50, 200, 800), seeds: int = 6, random_seed: int = 0) -> xr.Dataset:
    """Return a sweep over the width with quantiles of norms: uniform on [0, 1 + t], of the mean field .1 higher.

    The risk of SGD deviates from that of the mean field by about 1/√p. The optimal schedule falls from 1 to .5. A
    second task takes the place of the first at t = 1.
    """
    rng = np.random.default_rng(random_seed)
    names, dynamics, time = (
        ("dynamics", "p", "seed", "time"),
        ["sgd", "mean_field"],
        np.array([0.0, 0.5, 1.0, 2.0, 4.0]),
    )
    shape = (2, len(p), seeds, len(time))
    noise = rng.standard_normal(shape[:3]) / np.sqrt(np.array(p)[:, None])
    noise[1] = 0.0
    shift = np.array([0.0, 0.1])[:, None, None, None, None]
    norms = QUANTILES * (1.0 + time)[:, None] + shift
    ds = xr.Dataset(
        {
            "risk": (names, np.exp(-time) * (1.0 + 0.1 * noise[..., None])),
            "norm_quantiles": ((*names, "quantile"), np.broadcast_to(norms, (*shape, len(QUANTILES))).copy()),
            "risk_of_task": ((*names, "task"), 0.2 + 0.1 * rng.random((*shape, 2))),
            "schedule_rate": ((*names[:3], "knot"), np.broadcast_to([1.0, 0.75, 0.5], (*shape[:3], 3)).copy()),
            "schedule_risk": (names[:3], np.full(shape[:3], np.exp(-4.0))),
            "end_steps": (names[:3], np.full(shape[:3], 1e4)),
            "end_time": (names[:3], np.full(shape[:3], 4.0)),
            "status": (names[:3], np.ones(shape[:3], np.uint8)),
        },
        coords={"dynamics": dynamics, "p": list(p), "seed": np.arange(seeds), "time": time, "quantile": QUANTILES},
    ).assign_attrs(
        {name: value for name, value in FIXED.items() if name != "p"} | {"d": 40, "gamma": 0.1, "Delta": 0.0}
    )
    return labelled(ds).assign_attrs(tasks="in_turn", switch_time=1.0)


START, FLOOR, SPREAD = 0.2, 0.05, 0.4
"""The risk at the start, and the prefactors of the excess risk and of the spread of log tr Q."""


def regime_dataset(
    delta: Sequence[float] = (-1.0, -0.5, 0.0, 0.5, 1.0),
    kappa: Sequence[float] = (0.0, 0.25, 0.5),
    d: Sequence[int] = (100, 200, 500, 1000, 3000, 10_000),
    *,
    seeds: int = 16,
    scatter: float = 0.3,
    random_seed: int = 0,
) -> xr.Dataset:
    """Return a sweep of SGD, its ODE and gradient flow over (δ, κ, d), with the exponents of theory.

    R_SGD − R_GF ∝ d^−max(κ+δ, 0), of relative `scatter`, a fall of R_GF ∝ d^min(κ+δ, 0), log tr Q of the standard
    deviation D.
    """
    rng = np.random.default_rng(random_seed)
    axes = {
        name: xr.DataArray(list(values), dims=name)
        for name, values in zip(("d", "delta", "kappa"), (d, delta, kappa), strict=True)
    }
    axes["seed"] = xr.DataArray(np.arange(seeds), dims="seed")
    dims = tuple(axes)
    noise = [xr.DataArray(rng.standard_normal([axes[dim].size for dim in dims]), dims=dims) for _ in range(2)]
    s = axes["delta"] + axes["kappa"]
    flow = START * (1.0 - 0.5 * axes["d"] ** np.minimum(s, 0.0)) + 0.0 * noise[0]
    excess = FLOOR * axes["d"] ** -excess_risk_exponent(axes["delta"], axes["kappa"]) * (1.0 + scatter * noise[0])
    spread = SPREAD * axes["d"] ** -deviation_exponent(axes["delta"], axes["kappa"])
    final = xr.concat([flow + excess, flow, flow], "dynamics")
    growth = xr.concat([0.3 + spread * noise[1], 0.3 + 0.0 * noise[0], 0.0 * noise[0]], "dynamics")
    time = {"time": [0.0, 1.0]}
    ds = xr.Dataset(
        {
            "risk": xr.concat([xr.full_like(final, START), final], "time"),
            "student_norm": np.exp(xr.concat([xr.zeros_like(growth), growth], "time")),
            "status": xr.ones_like(final, dtype=np.uint8),
        }
    ).assign_coords(axes | time | {"dynamics": ["sgd_chain", "ode", "gradient_flow"]})
    fields = {"gamma": axes["d"] ** -axes["delta"], "p": (2.0 * axes["d"] ** axes["kappa"]).round()}
    named = labelled(ds.drop_attrs().transpose("dynamics", *dims, "time").assign_coords(fields))
    return named.assign_attrs(k=1, Delta=0.0, activation="erf")


def one_axis_dataset(*, gamma: Sequence[float] = (0.05, 0.1, 0.2), seeds: int = 6, random_seed: int = 0) -> xr.Dataset:
    """Return a sweep over γ alone, with an exit and with positive random numbers for every observable of overlaps.

    It contains the observables that plugins have registered. p = k = 2; the other fields are attributes.
    """
    from sweeplib.networks.observables import OBSERVABLES
    from sweeplib.networks.views import OverlapView

    rng = np.random.default_rng(random_seed)
    times, names = np.linspace(0.0, 2.0, 5), ("dynamics", "gamma", "seed")
    sizes = {"dynamics": 2, "gamma": len(gamma), "seed": seeds, "time": len(times), "quantile": len(QUANTILES)}
    sizes |= dict.fromkeys(("student", "student_2", "teacher", "teacher_2", "block", "task"), 2) | {"threshold": 1}
    sizes |= {"outlier": 8, "joint_outlier": 10}  # p (p + k) and p (p + k + 1)

    def random_values(dims: tuple[str, ...]) -> xr.Variable:
        """Return a variable over `dims` of random numbers between .1 and 1.1."""
        return xr.Variable(dims, 0.1 + rng.random([sizes[dim] for dim in dims]))

    ends = {"end_time": random_values(names), "exit_time": random_values((*names, "threshold"))}
    ends |= {name.replace("time", "steps"): 100.0 * variable for name, variable in ends.items()}
    ds = xr.Dataset(
        ends | {"status": (names, np.ones([sizes[name] for name in names], np.uint8))},
        coords={"dynamics": ["ode", "sgd_chain"], "gamma": list(gamma), "seed": np.arange(seeds), "time": times,
                "threshold": [0.5], "quantile": QUANTILES},
    ).assign_attrs({name: value for name, value in FIXED.items() if name not in ("p", "k", "spherical")}
                   | {"p": 2, "k": 2, "spherical": 0, "d": 100, "Delta": 0.0})  # fmt: skip
    for name, observable in OBSERVABLES.items():
        if observable.is_of(OverlapView):
            inner = observable.dims_of(OverlapView)
            ds[name] = random_values((*names, *(("time",) if observable.over_time else ()), *inner))
    return labelled(ds)


def with_truth_values(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset that is the same for spherical and plain students, an axis whose labels are true and false."""
    varied = [name for name in ds.data_vars if "gamma" in ds[name].dims]
    whole = ds.assign({name: ds[name].expand_dims(spherical=[True, False], axis=1) for name in varied})
    del whole.attrs["spherical"]
    return labelled(whole)


def without_units(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset without its variables over units: as a sweep has it if it has several widths."""
    inner = {"student", "student_2", "teacher", "teacher_2", "outlier", "joint_outlier"}
    return ds.drop_vars([name for name, variable in ds.variables.items() if inner.intersection(variable.dims)])


def cut_short(ds: xr.Dataset, end: str) -> xr.Dataset:
    """Return the dataset in which some runs end early, in the way `end`.

    "missing": the first two seeds have no values. "lost": every second run has none.
    "exit": all runs stop at their exits, or every second at half of the time if there are none. "timeout", "diverged":
    every second run ends at half of the time.
    """
    even = ds["seed"] % 2 == 0
    if end in ("missing", "lost"):
        gone = even if end == "lost" else ds["seed"] <= ds["seed"][1]
        values = {str(name): ds[name].where(~gone) for name in ds.data_vars if name != "status"}
        return ds.assign(values | {"status": _with_status(ds, gone, "killed" if end == "lost" else end)})
    half = 0.5 * (ds["time"][0] + ds["time"][-1]) if "time" in ds.coords else ds["seed"].max()
    last = half.where(even, np.inf)
    if end == "exit" and "exit_time" in ds:
        last = ds["exit_time"].max("threshold").fillna(np.inf)
    over_time = [str(name) for name in ds.data_vars if {"seed", "time"} <= set(ds[name].dims)]
    result = {name: ds[name].where(ds["time"] <= last).transpose(*ds[name].dims) for name in over_time}
    if "exit_time" in ds:
        stop = ds["end_time"].where(ds["end_time"] < last, last).transpose(*ds["end_time"].dims)
        result |= {"end_time": stop, "end_steps": stop * ds["end_steps"] / ds["end_time"]}
        if end != "exit":
            result |= {name: ds[name].where(ds["exit_time"] <= stop) for name in ("exit_time", "exit_steps")}
    attrs = {name: ds[name].attrs for name in result}
    short = ds.assign({name: values.assign_attrs(attrs[name]) for name, values in result.items()})
    return short.assign_attrs(stop="exit") if end == "exit" else short.assign(status=_with_status(ds, even, end))


def _with_status(ds: xr.Dataset, where: xr.DataArray, status: str) -> xr.DataArray:
    """Return the statuses of a dataset, in which those that were ok are `status` at a mask."""
    changed = ds["status"].where(~(where & (ds["status"] == Status.ok)), Status[status])
    return changed.transpose(*ds["status"].dims).astype(np.uint8).assign_attrs(STATUS_LABELS)
