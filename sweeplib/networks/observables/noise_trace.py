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

v is a function of the overlaps. With V(s) = Ψ^Var_ii at sΩ (Ψ^Var: arXiv 2302.05882, eq. 10), E[c_i² ‖x‖²] is
V(1) + (2/d) V'(1), for every d (docs/theory.md, "The length of a sample"), and ‖∇R‖² = (1/p²) Σ_i ‖E[c_i x]‖²
(`mean_gradients`). V' is a difference of fourth order: exact for V of degree four in s, as of two squares (three), and
relatively wrong by 10⁻¹¹ for two Hermite polynomials of degree 3, by 2·10⁻⁸ for two of degree 8.
"""

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import Expectations
from sweeplib.networks.observables.gradient_norm import (
    drifts_of,
    estimate_by_rules,
    gradients_of_forms,
    squared_mean_gradients,
)
from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.views import Estimate, OverlapView, TrainingView, TwoTimeView

STEP = 0.002
"""The step of s in the differences from which V' is taken."""


@np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
def of_fresh_samples(now: OverlapView) -> Estimate:
    """The trace (n,) of the noise for batches of fresh samples, with its error."""
    return estimate_by_rules(now, _by_rule, _form_errors)


def _form_errors(now: OverlapView, rule: Expectations) -> Array:
    """Bounds (n,) of the errors of the trace where forms, sums of error functions, stand for σ: those of E‖g‖²/n_b."""
    gradient, off = gradients_of_forms(now, rule)
    return np.asarray((2.0 * gradient * off + off**2) / now.batch_size)


def _by_rule(now: OverlapView, expectations: Expectations) -> Estimate:
    """Return the trace (n,) of the noise by the drifts of a rule, E‖g‖² − ‖∇R‖² over n_b, and what ‖∇R‖² lacks."""
    d = np.asarray(now.d, dtype=float)
    drifts = drifts_of(now, expectations, 1.0)
    near, far = (
        drifts_of(now, expectations, 1.0 + step).Var - drifts_of(now, expectations, 1.0 - step).Var
        for step in (STEP, 2.0 * STEP)
    )
    # V + (2/d) V', with V' = (8 near − far)/(12 h)
    variances = drifts.Var + (8.0 * near - far) / (6.0 * STEP * d)[:, None, None]
    second_moment = np.einsum("nii->n", variances) / now.a.shape[1] ** 2
    squares, lack = squared_mean_gradients(now, expectations, drifts)
    return Estimate(np.maximum(second_moment - squares / d, 0.0) / now.batch_size, lack / d / now.batch_size)


def of_training_set(now: TrainingView) -> Array | Estimate:
    """The trace (n,) for batches from a training set, or of fresh samples where there is none."""
    if not now.samples.any():
        return of_fresh_samples(now)
    unseen = (now.samples - now.batch_size) / np.maximum(now.samples - 1, 1)
    return unseen * now.gradient_variance / now.batch_size


def of_full_batch(now: TwoTimeView) -> Array:
    """The trace (n,) for the full batch of a training set: zero."""
    return np.zeros(len(now.a))


OBSERVABLES.add(
    Observable(
        "noise_trace",
        {OverlapView: of_fresh_samples, TrainingView: of_training_set, TwoTimeView: of_full_batch},
        (),
        "trace of the covariance of the effective noise",
        r"\mathrm{tr}\,\mathrm{Cov}\,\varepsilon",
        reads=READS | {"Delta", "d", "batch_size", "samples"},
        uses_drifts=True,
        estimated=lambda problem: problem.samples is None and is_inexact(problem),
        needs_teacher=True,
    ),
)
