"""Views: the arrays that observables read of the state of a dynamics, for n replicas at one time.

A view computes an array when an observable first reads it. Fields are the products of weights and inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array

if TYPE_CHECKING:
    from sweeplib.networks.maths.curvature import Curvatures
    from sweeplib.networks.maths.expectations import Risks
    from sweeplib.networks.problem import Problem

Lazy = Array | Callable[[], Array]
"""An array, or a function that computes it on first use."""


class Estimate(NamedTuple):
    """Values (n, ...) and their absolute errors, such as errors of quadrature."""

    value: Array
    error: Array


def _product(value: float, share: float, P: Array, a_star: Array) -> float:
    """The `target` of an observable that is the value of the rule itself, whatever P and a* are."""
    return share * value


class ExitLevel(NamedTuple):
    """How kernels see an observable fall: it increases with the value of a rule, and is this value by default.

    rule : function (pair, Q, M, P, a, a_star, out) that fills out (n,), as the `risk` of `Expectations` does; plain
        Python that numba compiles. Q (p, p, n), M (p, k, n), P (k, k, n), a (p, n) and a_star (k, n) are covariances of
        fields and second layers of n networks, none of which depends on the others. None: the risk itself. It is the
        same for all problems that differ in numbers alone.
    target : function (value, share, P, a_star) of numbers that returns the value of the rule at which the observable is
        `share` times what it is at `value`, for a network with the teacher P (k, k) and a_star (k,).
    """

    rule: Callable[..., None] | None = None
    target: Callable[[float, float, Array, Array], float] = _product

    @classmethod
    def above(cls, floor: float) -> "ExitLevel":
        """The level of an observable that is the risk plus a constant, the floor."""
        return cls(target=lambda value, share, P, a_star: share * (value + floor) - floor)


QUANTILES = (np.arange(64) + 0.5) / 64.0
"""The levels of recorded quantiles over units, the coordinates of the dimension `quantile`."""


class View:
    """Base of all views: arrays whose first axis counts replicas and whose other axes are named in `dims`."""

    dims: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The lengths of the dimensions that the problem determines, by name."""
        return {}

    def batches(self) -> Sequence["View"]:
        """Views of independent samples of which this view is the mean: their scatter is its error. None by default."""
        return ()


class Blocks:
    """The overlaps of L blocks of coordinates in which the inputs of n replicas have one eigenvalue each.

    eigenvalues (n, L); Q (n, L, p, p), M (n, L, p, k), P (n, L, k, k). The overlaps are their sums over blocks.
    """

    def __init__(self, eigenvalues: Array, Q: Array, M: Array, P: Array) -> None:
        self.eigenvalues, self.Q, self.M, self.P = eigenvalues, Q, M, P

    def weighted(self) -> tuple[Array, Array, Array]:
        """The covariances Q (n, p, p), M (n, p, k), P (n, k, k) of the fields: the sums, weighted by eigenvalues."""
        Q, M, P = (np.einsum("nb,nbij->nij", self.eigenvalues, overlaps) for overlaps in (self.Q, self.M, self.P))
        return Q, M, P


class OverlapView(View):
    """The overlaps of student and teacher units.

    Q (n, p, p), M (n, p, k), P (n, k, k) : overlaps; Q and M may be given as functions, called on first use.
    q (n, p) : the diagonal of Q; may be given as a function, so that Q need not be computed.
    a (n, p), a_star (n, k) : second layers.
    Delta (n,) : label-noise variance.
    expectations : functions for means over inputs, Gaussian, or of another data law, which has `risks` alone.
    d (n,), batch_size : input dimension, infinite unless given, and samples of a step, one unless given.
    gamma, second_layer_rate (n,) : the learning rate, one unless given, and that of the second layer over it, or zero.
    refit : function (view, samples, ridge) that does the work of `refitted`; by default for infinitely many samples.
    b (n, p) : offsets of the units, zero unless given.
    of_labels : what gives the means over fresh labels, `LabelMeans`.
    by_block : function that returns the overlaps of the blocks of inputs, None if these have one eigenvalue. Then
        means over inputs, as `expectations` are, take the overlaps of the view `fields`.
    by_task : function that returns the second layers (n, T, p) of the student and (n, T, k) of the teacher for each of
        several tasks; None for a single one.
    average : function that returns the overlaps Q (n, p, p) and M (n, p, k) of the averages of the weights; or None.
    average_fields : function that returns the covariances of the averages' fields in place of overlaps; or None where
        these are the overlaps.
    companion : function that returns the view of a second, worse solution, and a factor: the error of an observable is
        the factor times the difference of both; or None.
    """

    companion: "Callable[[], tuple[OverlapView, float] | None]" = staticmethod(lambda: None)
    average: Callable[[], Any] = staticmethod(lambda: None)
    average_fields: Callable[[], Any] = staticmethod(lambda: None)

    dims: ClassVar[tuple[str, ...]] = (
        "student", "student_2", "teacher", "teacher_2", "block", "task", "quantile", "outlier", "joint_outlier",
    )  # fmt: skip

    def __init__(
        self,
        Q: Lazy,
        M: Lazy,
        P: Array,
        a: Array,
        a_star: Array,
        Delta: Array,
        expectations: "Risks",
        q: Lazy | None = None,
        d: NDArray[Any] | None = None,
        batch_size: int = 1,
        refit: "Callable[[OverlapView, NDArray[np.int64], Array], Array] | None" = None,
        b: Array | None = None,
        of_labels: Any = None,
        by_block: Callable[[], Blocks] | None = None,
        by_task: Callable[[], tuple[Array, Array]] | None = None,
        gamma: Array | None = None,
        second_layer_rate: Array | None = None,
    ) -> None:
        self._Q, self._M, self._q = Q, M, q
        self.P, self.a, self.a_star, self.Delta, self.expectations = P, a, a_star, Delta, expectations
        self.d = np.full(len(a), np.inf) if d is None else d
        self.batch_size = batch_size
        self.b = np.zeros(a.shape) if b is None else b
        self._refit = refit
        self.of_labels = of_labels
        self.by_block, self.by_task = by_block, by_task
        self.gamma = np.ones(len(a)) if gamma is None else gamma
        self.second_layer_rate = np.zeros(len(a)) if second_layer_rate is None else second_layer_rate

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The widths p and k, the numbers of blocks of inputs and tasks, and those of outliers of Hessians."""
        units = {"student": problem.p, "student_2": problem.p, "teacher": problem.k, "teacher_2": problem.k}
        others = {"block": len(problem.blocks[0]), "task": len(problem.course.a_star), "quantile": len(QUANTILES)}
        outliers = problem.p * (problem.p + problem.k)
        return units | others | {"outlier": outliers, "joint_outlier": outliers + problem.p}

    @cached_property
    def Q(self) -> Array:
        """The overlaps of students (n, p, p)."""
        return evaluated(self._Q)

    @cached_property
    def M(self) -> Array:
        """The overlaps of students and teachers (n, p, k)."""
        return evaluated(self._M)

    @cached_property
    def q(self) -> Array:
        """The diagonal of Q (n, p); computed from Q unless it was given."""
        return np.einsum("nii->ni", self.Q) if self._q is None else evaluated(self._q)

    @cached_property
    def blocks(self) -> Blocks:
        """The overlaps of the blocks of inputs; one block if these have one eigenvalue."""
        if self.by_block is None:
            return Blocks(np.ones((len(self.a), 1)), self.Q[:, None], self.M[:, None], self.P[:, None])
        return self.by_block()

    @property
    def layers(self) -> tuple[Array, Array]:
        """The second layers (n, T, p) of the student, and (n, T, k) of the teacher, for each task."""
        return (self.a[:, None], self.a_star[:, None]) if self.by_task is None else self.by_task()

    @cached_property
    def fields(self) -> "OverlapView":
        """The view whose overlaps are the fields' covariances: this one, unless inputs have several eigenvalues."""
        if self.by_block is None:
            return self
        Q, M, P = self.blocks.weighted()
        of_problem = self.a, self.a_star, self.Delta, self.expectations
        return OverlapView(Q, M, P, *of_problem, None, self.d, self.batch_size, self._refit, self.b, self.of_labels)

    @cached_property
    def curvatures(self) -> "tuple[Curvatures, Curvatures]":
        """The curvatures of the population risk and of batches at the n networks, and the errors of these."""
        curvatures: tuple[Curvatures, Curvatures] = self.of_labels.curvatures(self)
        return curvatures

    def refitted(self, samples: NDArray[np.int64], ridge: Array) -> Array:
        """The second layers (n, p) of ridge regressions on fresh samples, at the overlaps of this view.

        samples (n,) : their numbers, 0 for infinitely many. ridge (n,) : λ of the penalty.
        """
        if self._refit is not None:
            return self._refit(self, samples, ridge)
        from sweeplib.networks.maths.second_layer import population_moments, ridge_regression

        moments = population_moments(self.expectations, self.Q, self.M, self.P, self.a_star)
        return ridge_regression(*moments, ridge)


class TrainingView(OverlapView):
    """The overlaps of students that may have a training set, and means over its samples, computed on first use.

    samples (n,) : sizes of the training sets; zero where samples are fresh, in which case the means are undefined.
    training_risk (n,) : ½ mean of (y − f)², y the noisy labels.
    gradient_variance (n,) : mean over the samples of ‖∇L − mean of ∇L‖², L = ½ (y − f)², ∇ with respect to W.
    """

    def __init__(self, overlaps: OverlapView, samples: NDArray[np.int64], risk: Lazy, variance: Lazy) -> None:
        # shares all that the view of the overlaps has, also what it has computed
        vars(self).update(vars(overlaps))
        self.samples, self._risk, self._variance = samples, risk, variance

    @cached_property
    def training_risk(self) -> Array:
        """The training risks (n,)."""
        return evaluated(self._risk)

    @cached_property
    def gradient_variance(self) -> Array:
        """The variances of the gradients of samples (n,)."""
        return evaluated(self._variance)


@dataclass(frozen=True, eq=False)
class ParticleView(View):
    """N particles, each a unit of the `student`. N is p unless the dynamics has another number.

    m (n, N, k) : overlaps with the teacher.
    q (n, N) : squared norms over d.
    a (n, N) : second layer.
    weight (n, N) : weights of the particles, whose sum is one.
    P (n, k, k), a_star (n, k), Delta (n,) : as in `OverlapView`.
    b (n, N) : offsets of the particles, None without any.
    """

    dims = ("student", "teacher", "teacher_2", "quantile")

    m: Array
    q: Array
    a: Array
    weight: Array
    P: Array
    a_star: Array
    Delta: Array
    b: Array | None = field(default=None, kw_only=True)

    @classmethod
    def sizes(cls, problem: "Problem") -> dict[str, int]:
        """The lengths of the dimensions: one particle for each student unit, and the teacher width."""
        return {"student": problem.p, "teacher": problem.k, "teacher_2": problem.k, "quantile": len(QUANTILES)}


@dataclass(frozen=True, eq=False)
class NetworkView(ParticleView):
    """Particles of a dynamics that computes the population risk of their network.

    risk (n,) : ½ E[(f* − f)²].
    """

    risk: Array


class TwoTimeView(OverlapView):
    """The overlaps now, and the functions of a response theory of now and of T instants: the recording times.

    C (n, T, p, p) : correlations W W'ᵀ/d of the students now with those at an instant, NaN at later ones; may be given
        as a function, called on first use.
    R (n, T, p, p) : responses of the students now to a force on them at an instant, likewise.
    training_risk (n,) : the mean loss over the data set, with its label noise.
    batches : function that returns the views of the batches of samples of which these are means.
    """

    dims = (*OverlapView.dims, "instant")

    def __init__(
        self, overlaps: OverlapView, C: Lazy, R: Lazy, training_risk: Array,
        batches: Callable[[], Sequence["TwoTimeView"]] | None = None,
    ) -> None:  # fmt: skip
        vars(self).update(vars(overlaps))
        self._C, self._R, self.training_risk, self._batches = C, R, training_risk, batches

    def batches(self) -> Sequence["TwoTimeView"]:
        """The views of the batches of samples of which this view is the mean."""
        return self._batches() if self._batches else ()

    @cached_property
    def C(self) -> Array:
        """The correlations of the students now with those at T instants (n, T, p, p)."""
        return evaluated(self._C)

    @cached_property
    def R(self) -> Array:
        """The responses of the students now to forces at T instants (n, T, p, p)."""
        return evaluated(self._R)


VIEW_DIMS = tuple(dict.fromkeys(dim for view in (OverlapView, ParticleView, TwoTimeView) for dim in view.dims))
"""The dimensions of the views above; an axis of a sweep cannot have one of these names."""


def evaluated(lazy: Any) -> Array:
    """The array that a `Lazy` is, or returns."""
    return lazy() if callable(lazy) else lazy
