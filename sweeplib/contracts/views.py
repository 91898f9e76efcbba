"""Views of three replicas, made of drawn weights without any dynamics, for checks of observables.

Arrays begin with the axis of the replicas (n); Q, M and P are overlaps of students and teachers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.label_means import LabelMeans
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import Criterion, Problem
from sweeplib.networks.views import NetworkView, OverlapView, ParticleView, TrainingView, TwoTimeView, View

REPLICAS, STUDENTS, TEACHERS, INSTANTS, DIMENSION = 3, 4, 2, 7, 12
"""The numbers of replicas, of student and teacher units, of instants of functions of two times, and d."""
_PROBLEM = Problem(gamma=0.1, p=STUDENTS, k=TEACHERS, d=DIMENSION, Delta=0.0, activation="erf")
SIZES = OverlapView.sizes(_PROBLEM) | {"instant": INSTANTS}
"""The lengths of the dimensions of the views."""


def _arrays(**shapes: tuple[int, ...]) -> dict[str, Array]:
    """Return positive numbers, by name, with these shapes behind the axis of the replicas."""
    rng = np.random.default_rng(4)
    return {name: 0.2 + rng.random((REPLICAS, *shape)) for name, shape in shapes.items()}


def _weights(units: int) -> tuple[Array, Array]:
    """Return weights W (n, units, d) and W* (n, k, d)."""
    rng = np.random.default_rng(5)
    W, W_star = (rng.normal(size=(REPLICAS, rows, DIMENSION)) for rows in (units, TEACHERS))
    return W, W_star


def _overlaps(**other: Any) -> dict[str, Any]:
    """Return the arguments of a view of overlaps, by name; `other` replace them."""
    W, W_star = _weights(STUDENTS)
    pairs = {"Q": (W, W), "M": (W, W_star), "P": (W_star, W_star)}
    result: dict[str, Any] = {
        name: np.einsum("nid,njd->nij", first, second) / DIMENSION for name, (first, second) in pairs.items()
    }
    result |= _arrays(a=(STUDENTS,), a_star=(TEACHERS,), Delta=(), gamma=(), second_layer_rate=()) | {
        "expectations": expectations("erf")
    }
    result["of_labels"] = LabelMeans(Criterion("square", (), signs=False), "erf", "committee", "erf")
    return result | {"d": np.full(REPLICAS, DIMENSION), "batch_size": 2} | other


def _give_averages(view: OverlapView) -> None:
    """Give a view averages of the weights, with half of all overlaps."""
    view.average = lambda: (0.5 * view.Q, 0.5 * view.M)


def overlap_view(**other: Any) -> OverlapView:
    """Return a view of overlaps; `other` are arguments in place of its own."""
    view = OverlapView(**_overlaps(**other))
    _give_averages(view)
    return view


def training_view(**other: Any) -> TrainingView:
    """Return a view of overlaps with a training set; `other` are arguments in place of its own."""
    means = _arrays(risk=(), variance=())
    view = TrainingView(overlap_view(**other), np.array([5, 6, 7]), means["risk"], means["variance"])
    _give_averages(view)
    return view


def _particles(**other: Any) -> dict[str, Array]:
    """Return the arguments of a view of particles, by name: overlaps m (n, i, k) and q (n, i); `other` replace them.

    A particle stands for the part `weight` of the student, so that the weights of all are 1 in sum.
    """
    W, W_star = _weights(STUDENTS)
    m, P = (np.einsum("nid,njd->nij", first, W_star) / DIMENSION for first in (W, W_star))
    result = _arrays(a=(STUDENTS,), weight=(STUDENTS,), a_star=(TEACHERS,), Delta=())
    result["weight"] /= result["weight"].sum(axis=1, keepdims=True)
    return {"m": m, "q": np.einsum("nid,nid->ni", W, W) / DIMENSION, "P": P} | result | other


def particle_view(**other: Any) -> ParticleView:
    """Return a view of particles of different weights; `other` are arguments in place of its own."""
    return ParticleView(**_particles(**other))


def network_view(**other: Any) -> NetworkView:
    """Return a view of particles with the risk of their network; `other` are arguments in place of its own."""
    return NetworkView(**_particles(**other), **_arrays(risk=()))


def two_time_view(**other: Any) -> TwoTimeView:
    """Return a view of overlaps with functions of two times; `other` are arguments in place of its own."""
    two_times = INSTANTS, STUDENTS, STUDENTS
    functions: dict[str, Any] = _arrays(C=two_times, R=two_times, training_risk=())
    view = TwoTimeView(overlap_view(**other), **functions)
    _give_averages(view)
    return view


VIEWS: dict[type[View], Callable[..., View]] = {
    OverlapView: overlap_view,
    TrainingView: training_view,
    ParticleView: particle_view,
    NetworkView: network_view,
    TwoTimeView: two_time_view,
}
"""The function that makes each view."""


def parts(view: View) -> dict[str, Array]:
    """Return copies of the arrays of a view, by name."""
    return {name: value.copy() for name, value in vars(view).items() if isinstance(value, np.ndarray)}


def of_one_replica(view: type[View], replica: int) -> View:
    """Return a view, of the class `view`, of a single one of the replicas."""
    whole = VIEWS[view]()
    for name, value in vars(whole).items():
        if isinstance(value, np.ndarray):
            object.__setattr__(whole, name, value[replica : replica + 1])
    return whole
