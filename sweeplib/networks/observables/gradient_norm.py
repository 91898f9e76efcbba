"""Norm of the gradient of the population risk by the first layer, ‖∇R‖ = √(tr DΩDᵀ/(p² d)), in R^{pd} also on spheres.

It is a function of the drifts of the overlaps (`mean_gradients`), in closed form where these are.

A rule is a set of `Expectations`, by which means over fields are found; some have a finer one. Some take forms, sums of
error functions, for σ, which are off by a misfit. `now` is a view of n networks, g the gradient of a sample's loss.
"""

from collections.abc import Callable

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations import SLOW, Expectations
from sweeplib.networks.maths.expectations.system import Drifts, System
from sweeplib.networks.maths.mean_gradients import mean_gradient_products, resolution_of
from sweeplib.networks.observables.observable import OBSERVABLES, Observable, is_inexact
from sweeplib.networks.observables.risk import READS
from sweeplib.networks.views import Estimate, OverlapView


@np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
def gradient_norm(now: OverlapView) -> Estimate:
    """The norm ‖∇R‖ (n,), with its error."""
    return estimate_by_rules(now, _by_rule, lambda now, rule: gradients_of_forms(now, rule)[1])


def estimate_by_rules(
    now: OverlapView,
    by_rule: Callable[[OverlapView, Expectations], Estimate],
    of_forms: Callable[[OverlapView, Expectations], Array],
) -> Estimate:
    """Return numbers (n,) of a view by its rule, with their errors.

    by_rule : function that returns the numbers by a rule, and errors that every rule has. of_forms : function that
        returns their errors where the rule is inexact by its forms of σ alone.
    Further errors are the distances to the finer rule if there is one, or `of_forms`.
    """
    rule = now.expectations
    assert isinstance(rule, Expectations)  # there is a teacher
    value, error = by_rule(now, rule)
    if rule.finer:
        return Estimate(value, error + SLOW * np.abs(value - by_rule(now, rule.finer).value))
    return Estimate(value, error if rule.exact else error + of_forms(now, rule))


def _by_rule(now: OverlapView, rule: Expectations) -> Estimate:
    """The norm ‖∇R‖ (n,) at the overlaps of a view by a rule for the drifts, and what it lacks."""
    squares, lack = squared_mean_gradients(now, rule, drifts_of(now, rule, 0.0))
    norm = np.sqrt(squares / now.d)
    return Estimate(norm, np.sqrt((squares + lack) / now.d) - norm)


def squared_mean_gradients(now: OverlapView, rule: Expectations, drifts: Drifts) -> Estimate:
    """Return d ‖∇R‖² (n,) at the overlaps of a view by their `drifts`, those of the `rule`, and what it lacks."""
    state = now.Q, now.M, now.P
    resolution = resolution_of(rule, *state, now.a, now.a_star, now.Delta)
    products, lack = mean_gradient_products(drifts.M, drifts.GF, *state, resolution)
    squares = now.a.shape[1] ** 2
    return Estimate(np.asarray(np.einsum("nii->n", products) / squares), lack / squares)


def drifts_of(now: OverlapView, rule: Expectations, stretch: float) -> Drifts:
    """Return the drifts of the n networks of a view by a rule, with n as first axis; Ψ^Var is that at Ω `stretch`.

    With a `stretch` of 0 Ψ^Var is not computed, and has any values.
    """
    stretches = np.full(len(now.a), stretch)
    systems = map(System, now.Q, now.M, now.P, now.a, now.a_star, now.Delta, stretches)
    return Drifts(*map(np.array, zip(*(rule.drifts_of(system) for system in systems), strict=True)))


def gradients_of_forms(now: OverlapView, rule: Expectations) -> tuple[Array, Array]:
    """Return bounds (n,) of √E‖g‖² and of its error, where forms are off σ and σ' by their misfits.

    They take |σ'| at its largest, `lipschitz`, and E at its root mean square.
    """
    displacement = np.sqrt(2.0 * np.abs(rule.risks(now.Q, now.M, now.P, now.a, now.a_star)) + now.Delta)
    of_units = np.linalg.norm(now.a, axis=1) / now.a.shape[1]
    gradient = of_units * rule.lipschitz * displacement
    return gradient, of_units * (
        rule.slope_misfit * displacement + rule.lipschitz * rule.label_misfits(now.a, now.a_star)
    )


OBSERVABLES.add(
    Observable(
        "gradient_norm",
        gradient_norm,
        (),
        "norm of the gradient of the population risk",
        r"\|\nabla \mathcal{R}\|",
        reads=READS | {"d"},
        uses_drifts=True,
        estimated=is_inexact,
        needs_teacher=True,
        least=0.0,
    ),
)
