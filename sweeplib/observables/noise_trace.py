"""Trace of the covariance of SGD's effective noise ε = ∇(R − R̂_b), b the batch, ∇ with respect to the first layer W.

A step is W += −γ ∇R + γ ε, on the sphere before the projection ("Another look at SGD", in the talk "Dimension-free
limits of SGD for two-layers neural networks", 2023; its slides have no equation numbers). The gradient of the loss
L = ½E² of a sample is ∇_i L = −(1/p) c_i x, c_i = a_i σ'(λ_i) E, with label noise in E. The mean gradient of n_b fresh
samples has

    tr Cov ε = v/n_b,  v = E‖∇L‖² − ‖∇R‖² = (1/p²) Σ_i E[c_i² ‖x‖²] − ‖∇R‖².

n_b distinct samples, uniformly chosen among the n of a training set, have, given the set,

    tr Cov ε = (v_n/n_b) (n − n_b)/(n − 1),  v_n = (1/n) Σ_μ ‖∇L_μ − (1/n) Σ_ν ∇L_ν‖²,

which is zero for the full batch, and as n → ∞ that of fresh samples. In passes through the set (`sampling: epochs`) it
is the same of a single batch; that the batches of a pass exclude each other is not in it.

v is a function of the overlaps. E[c_i² ‖x‖²] is Ψ^Var_ii at Ω (1 + 2/d), up to terms of order 1/d² (docs/theory.md,
"The length of a sample"; Ψ^Var: arXiv 2302.05882, eq. 10). Gradient flow, Ẇ = −pd ∇R, has Q̇ = Ψ^GF, Ṁ = Ψ^M and
Ṙ = −pd ‖∇R‖²: this gives ‖∇R‖² as −1/(pd) times the derivative of R in the direction (Ψ^GF, Ψ^M), which is a central
difference.
"""

import numpy as np

from sweeplib.maths.expectations.system import Drifts, System
from sweeplib.observables.observable import OBSERVABLES, Array, Observable
from sweeplib.observables.risk import READS
from sweeplib.views import OverlapView, TrainingView, TwoTimeView

DISPLACEMENT = 1e-5
"""The largest change of an overlap in the central difference, relative to the largest overlap."""


def of_fresh_samples(now: OverlapView) -> Array:
    """The trace (n,) for batches of fresh samples."""
    p, d = now.a.shape[1], np.asarray(now.d, dtype=float)
    systems = map(System, now.Q, now.M, now.P, now.a, now.a_star, now.Delta, 1.0 + 2.0 / d)
    drifts = [now.expectations.drifts_of(system) for system in systems]
    second_moment = np.array([np.trace(each.Var) for each in drifts]) / p**2
    return np.maximum(second_moment - _squared_gradients(now, drifts), 0.0) / now.batch_size


def _squared_gradients(now: OverlapView, drifts: list[Drifts]) -> Array:
    """‖∇R‖² (n,)."""
    steps = np.empty(len(drifts))
    for i, each in enumerate(drifts):
        largest = max(np.abs(now.Q[i]).max(), np.abs(now.M[i]).max())
        steps[i] = DISPLACEMENT * largest / max(np.abs(each.GF).max(), np.abs(each.M).max(), np.finfo(float).tiny)
    ahead, behind = (_risks(now, drifts, sign * steps) for sign in (1.0, -1.0))
    return (behind - ahead) / (2.0 * steps * now.a.shape[1] * now.d)


def _risks(now: OverlapView, drifts: list[Drifts], steps: Array) -> Array:
    """The risks (n,) at the overlaps that gradient flow has after these times, to first order."""
    Q, M = (
        np.array([value + step * drift for value, step, drift in zip(values, steps, parts, strict=True)])
        for values, parts in ((now.Q, [each.GF for each in drifts]), (now.M, [each.M for each in drifts]))
    )
    return now.expectations.risks(Q, M, now.P, now.a, now.a_star)


def of_training_set(now: TrainingView) -> Array:
    """The trace (n,) for batches from a training set, or of fresh samples where there is none."""
    if not now.samples.any():
        return of_fresh_samples(now)
    left = (now.samples - now.batch_size) / np.maximum(now.samples - 1, 1)
    return left * now.gradient_variance / now.batch_size


def of_full_batch(now: TwoTimeView) -> Array:
    """The trace (n,) for the full batch of a training set: zero."""
    return np.zeros(len(now.a))


OBSERVABLES.register(
    "noise_trace",
    Observable(
        "noise_trace",
        {OverlapView: of_fresh_samples, TrainingView: of_training_set, TwoTimeView: of_full_batch},
        (),
        "trace of the covariance of the effective noise",
        r"\mathrm{tr}\,\mathrm{Cov}\,\varepsilon",
        reads=READS | {"Delta", "d", "batch_size", "samples"},
    ),
)
