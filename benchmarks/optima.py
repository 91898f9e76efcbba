"""How often intervals of an optimum cover it, how wide they are and how many are open, as a table of designs.

    python -m benchmarks.optima [SCANS]

Scans of a learning rate are drawn with a known optimum. An interval that is open at an end of the scan covers what lies
beyond. The rows of a table are the laws of runs; each is over 5, 7 and 12 rates, linear and geometric.
"""

import sys
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.statistics.optima import MeanCurve

BEST = 1.0
"""The optimum of all curves, of rates in units of it."""
CURVES: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "1/(γ(2 − γ))": (lambda g: 1.0 / (g * (2.0 - g)), 0.36, 1.68),
    "1/γ + γ²/2": (lambda g: 1.0 / g + g**2 / 2.0, 0.3, 1.7),
    "1/γ + γ²/2, a wide scan": (lambda g: 1.0 / g + g**2 / 2.0, 0.05, 3.0),
    "1 + .03 ln²γ + .01 ln³γ": (lambda g: 1.0 + 0.03 * np.log(g) ** 2 + 0.01 * np.log(g) ** 3, 0.36, 1.68),
    "the optimum beyond the scan": (lambda g: 1.0 / (g * (2.0 - g)), 0.3, 0.9),
}
"""Mean steps against the rate, and the ends of the scan."""
OWN = 0.05
"""The part of the scatter that runs of one start do not share between rates."""


def exits(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return factors of exit times, of mean 1 and coefficient of variation .47."""
    return np.exp(0.45 * rng.standard_normal(shape) - 0.45**2 / 2.0)


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return exponential factors of mean 1."""
    return rng.exponential(size=shape)


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return lognormal factors of mean 1, whose logarithm has variance 1."""
    return rng.lognormal(-0.5, 1.0, shape)


def slow_runs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return exponential factors of mean 1, of which a twentieth is 20 times slower."""
    return rng.exponential(size=shape) * np.where(rng.random(shape) < 0.05, 20.0, 1.0) / 1.95


LAWS = {"exits": exits, "exponential": exponential, "lognormal(1)": lognormal, "a twentieth 20 times slower": slow_runs}
ODE = "ODE"
SPACINGS: dict[str, Callable[[float, float, int], Array]] = {"linear": np.linspace, "geometric": np.geomspace}
RATES, SEEDS = (5, 7, 12), (8, 64)


def factors(rng: np.random.Generator, shape: tuple[int, int], *, law: str, shared: bool) -> Array:
    """Return the factors (seeds, rates) by which runs differ from the mean: those of the ODE by their starts alone."""
    if law == ODE:
        return exits(rng, (shape[0], 1)) * np.ones(shape)
    if not shared:
        return LAWS[law](rng, shape)
    return LAWS[law](rng, (shape[0], 1)) * (1.0 + OWN * rng.standard_normal(shape))


class Coverage(NamedTuple):
    """How often the intervals of a design cover, and how wide they are.

    covered, value_covered : the parts of the intervals of the optimum and of the least value that cover.
    half_width : the median of the closed intervals of the optimum, over the optimum. open : the part that is open.
    """

    covered: float
    value_covered: float
    half_width: float
    open: float


def coverage(
    curve: str, rates: int, spacing: str, seeds: int, *, law: str, shared: bool, scans: int, random_seed: int = 0
) -> Coverage:
    """Return what intervals of .95 say of the optimum of a curve, over a number of scans."""
    rng, (steps, first, last) = np.random.default_rng(random_seed), CURVES[curve]
    x = SPACINGS[spacing](first, last, rates)
    least = float(steps(np.array([min(BEST, last)]))[0])
    rows = []
    for _ in range(scans):
        found = MeanCurve(steps(x) * factors(rng, (seeds, rates), law=law, shared=shared), x).optimum(0.95)
        low = found.low if found.low > x[0] * (1.0 + 1e-9) else 0.0
        high = found.high if found.high < x[-1] * (1.0 - 1e-9) else np.inf
        half = 0.5 * (high - low) / BEST if low and np.isfinite(high) else np.nan
        rows.append((low <= BEST <= high, found.value_low <= least <= found.value_high, half, np.isnan(half)))
    covered, value_covered, half_widths, is_open = np.array(rows, dtype=float).T
    closed = half_widths[np.isfinite(half_widths)]
    half_width = float(np.median(closed)) if len(closed) else np.nan
    return Coverage(covered.mean(), value_covered.mean(), half_width, is_open.mean())


def percent(part: float) -> str:
    """Return a half width as text, of which there is none where all intervals are open."""
    return "open" if np.isnan(part) else f"{100.0 * part:.2g} %"


def main(scans: int = 1000) -> None:
    """Print the table, a line as soon as its designs are counted."""
    titles = ["curve", "runs", "starts", "seeds", "optimum", "its design", "least value"]
    titles += ["half width, 12 rates", "5 rates", "open"]
    print("|", " | ".join(titles), "|")
    print("|", " | ".join(["---"] * len(titles)), "|")
    kinds = [(ODE, True), *product(LAWS, (True, False))]
    for curve, (law, shared), seeds in product(CURVES, kinds, SEEDS):
        number = scans if law != ODE else max(scans // 20, 1)
        found = {
            (rates, spacing): coverage(curve, rates, spacing, seeds, law=law, shared=shared, scans=number)
            for rates, spacing in product(RATES, SPACINGS)
        }
        worst = min(found, key=lambda design: found[design].covered)
        cells = [curve, law, "shared" if shared else "own", str(seeds), f"{found[worst].covered:.3f}"]
        cells += [f"{worst[0]} {worst[1]}", f"{min(each.value_covered for each in found.values()):.3f}"]
        cells += [percent(found[rates, "linear"].half_width) for rates in (12, 5)]
        print("|", " | ".join([*cells, f"{max(each.open for each in found.values()):.2f}"]), "|", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
