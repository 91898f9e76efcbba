"""A synthetic dataset of SGD, its ODE and gradient flow over (δ, κ, d), with the exponents of theory."""

import numpy as np
import xarray as xr

from sweeplib.theory.regimes import deviation_exponent, excess_risk_exponent
from tests.datasets import FLAGS, LABELS

START, FLOOR, SPREAD = 0.2, 0.05, 0.4
MORE_LABELS = {
    "delta": ("exponent of the learning rate", r"\delta"),
    "kappa": ("exponent of the student width", r"\kappa"),
    "student_norm": ("mean squared norm of the students", r"\mathrm{tr}Q/p"),
}


def regime_dataset(
    delta=(-1.0, -0.5, 0.0, 0.5, 1.0),
    kappa=(0.0, 0.25, 0.5),
    d=(100, 200, 500, 1000, 3000, 10_000),
    *,
    seeds: int = 16,
    scatter: float = 0.3,
    random_seed: int = 0,
) -> xr.Dataset:
    """R_SGD − R_GF ∝ d^−max(κ+δ, 0), of relative `scatter`, a fall of R_GF ∝ d^min(κ+δ, 0), log tr Q of std D."""
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
    return _labelled(ds.transpose("dynamics", *dims, "time").assign_coords(fields))


def _labelled(ds: xr.Dataset) -> xr.Dataset:
    for name, variable in ds.variables.items():
        long_name, symbol = (LABELS | MORE_LABELS).get(str(name), (str(name), None))
        variable.attrs = {"long_name": long_name, "units": "1"} | ({"symbol": symbol} if symbol else {})
    ds["status"].attrs = FLAGS
    return ds.assign_attrs(title="synthetic", k=1, Delta=0.0, activation="erf")
