"""Expectations of a student and a formula of the teacher's fields that is a sum of ridge functions Σ_e c_e τ_e(v_e·λ*).

The fields κ = Vλ* of the ridges are those of a committee with teacher overlaps M Vᵀ and V P Vᵀ. For polynomials on both
sides the closed forms apply to it; Ψ^M follows from λ* = V⁺κ. All other sums are computed by quadrature.
"""

from functools import cache
from typing import Any

import numpy as np

from sweeplib.maths.activations import activation
from sweeplib.maths.expectations import polynomials, quadrature
from sweeplib.maths.expectations.expectations import Expectations
from sweeplib.maths.expectations.system import Drifts, Pair, System
from sweeplib.maths.formulas import Formula, ridges
from sweeplib.maths.formulas.ridges import ONE, Ridge
from sweeplib.numerics.binding import bound
from sweeplib.numerics.compiled import inlined

Array = np.ndarray[Any, np.dtype[np.float64]]


@cache
def of_formula(student: str, formula: Formula) -> Expectations | None:
    """The expectations for a student's activation, for formulas that are sums of ridge functions; else None."""
    found = ridges(formula)
    if found is None:
        return None
    form = activation(student)
    name = f"{student}|{formula}"
    if form.hermite is not None and all(ridge.function.hermite is not None for ridge in found):
        return _of_polynomials(name, form.hermite, found, formula.width)
    functions = tuple(dict.fromkeys(ridge.function for ridge in found))
    numbered = [(functions.index(ridge.function), ridge.weight, ridge.direction) for ridge in found]
    return quadrature.of_ridges(name, form, functions, numbered)


def _unbound(*_: Any) -> Any:
    raise NotImplementedError("bound by `_of_polynomials`")


ridge_risk = ridge_drifts = ridge_in_lanes = ridge_M = ridge_P = layers = extended = made = _unbound
directions: Array = np.empty((0, 0))
inverse: Array = np.empty((0, 0))
weights: Array = np.empty(0)


def _ridge_M(M: Array) -> Array:
    """M Vᵀ (p, ridges, ...)."""
    out = np.zeros((M.shape[0], directions.shape[0], *M.shape[2:]))
    for e in range(directions.shape[0]):
        for r in range(directions.shape[1]):
            out[:, e] += directions[e, r] * M[:, r]
    return out


def _ridge_P(P: Array) -> Array:
    """V P Vᵀ (ridges, ridges, ...)."""
    half = ridge_M(P)
    out = np.zeros((directions.shape[0], directions.shape[0], *P.shape[2:]))
    for e in range(directions.shape[0]):
        for r in range(directions.shape[1]):
            out[e] += directions[e, r] * half[r]
    return out


def _layers(a_star: Array) -> Array:
    """The second layer c · (number of ridges) (ridges, ...) of the committee of ridges."""
    out = np.zeros((len(weights), *a_star.shape[1:]))
    for e in range(len(weights)):
        out[e] += len(weights) * weights[e]
    return out


def _extended(system: System) -> System:
    """The system of the ridges."""
    return made(
        system.Q,
        ridge_M(system.M),
        ridge_P(system.P),
        system.a,
        layers(system.a_star),
        system.Delta,
        system.stretch,
        system.pair,
    )


def _risk(pair: Pair, Q: Array, M: Array, P: Array, a: Array, a_star: Array, out: Array) -> None:
    """See `Expectations.risk`."""
    ridge_risk(pair, Q, ridge_M(M), ridge_P(P), a, layers(a_star), out)


def _copy(found: Drifts, out: Drifts) -> None:
    """Copy drifts of the ridges' system, Ψ^M by λ* = V⁺κ."""
    out.GF[:], out.Var[:], out.a[:], out.M[:] = found.GF, found.Var, found.a, 0.0
    for r in range(inverse.shape[0]):
        for e in range(inverse.shape[1]):
            out.M[:, r] += inverse[r, e] * found.M[:, e]


copied = _unbound


def _drifts(system: System, out: Drifts) -> None:
    """See `Expectations.drifts`."""
    given = extended(system)
    found = made_drifts(np.empty_like(given.M), np.empty_like(out.GF), np.empty_like(out.Var), np.empty_like(out.a))
    ridge_drifts(given, found)
    copied(found, out)


def _in_lanes(filled: int, system: System, out: Drifts) -> None:
    """See `Expectations.in_lanes`."""
    given = extended(system)
    found = made_drifts(np.empty_like(given.M), np.empty_like(out.GF), np.empty_like(out.Var), np.empty_like(out.a))
    ridge_in_lanes(filled, given, found)
    copied(found, out)


made_drifts = _unbound


def _of_polynomials(name: str, student: tuple[float, ...], found: tuple[Ridge, ...], k: int) -> Expectations:
    """The closed forms for a polynomial student."""
    rows = np.array([ridge.direction for ridge in found])
    missing = [r for r in range(k) if not rows[:, r].any()]
    found = (*found, *(Ridge(0.0, ONE, tuple(float(r == s) for s in range(k))) for r in missing))
    rows = np.array([ridge.direction for ridge in found])
    series = tuple(ridge.function.hermite or () for ridge in found)
    committee = polynomials.of_series(name, student, series)
    arrays = {
        "directions": rows,
        "inverse": np.ascontiguousarray(np.linalg.pinv(rows)),
        "weights": np.array([ridge.weight for ridge in found]),
    }
    own = {"ridge_M": inlined(bound(_ridge_M, **arrays)), "layers": inlined(bound(_layers, **arrays))}
    own["ridge_P"] = inlined(bound(_ridge_P, **arrays, **own))
    whole = {
        **own,
        "extended": inlined(bound(_extended, made=System, **own)),
        "copied": inlined(bound(_copy, **arrays)),
        "made_drifts": Drifts,
    }
    return Expectations(
        name,
        bound(_risk, ridge_risk=inlined(committee.risk), **whole),
        bound(_drifts, ridge_drifts=inlined(committee.drifts), **whole),
        bound(_in_lanes, ridge_in_lanes=inlined(committee.in_lanes), **whole),
    )
