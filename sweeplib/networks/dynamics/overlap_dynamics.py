"""Base of the dynamics whose state shows overlaps.

Shapes: n replicas, L blocks of inputs with one eigenvalue each, H second layers of tasks. Fields are the products of
weights and inputs; their covariances are the overlaps, unless inputs have eigenvalues other than one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import OF_RISK, RISK_ERROR, ROUNDING, Bound, Diagnostic, risk_bounds
from sweeplib.networks.dynamics.dynamics import Dynamics, NumericalOptions
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import Problem, problem_expectations
from sweeplib.networks.views import Blocks, Lazy, OverlapView, View


class OverlapDynamics(Dynamics):
    """A dynamics whose attributes `Q` (n, p, p), `M` (n, p, k) and `a` (n, p) are the current overlaps.

    They are initialised on first use, from the starts of the replicas.
    """

    view: ClassVar[type[View]] = OverlapView
    average: tuple[Array, Array] | None = None  # Q and M of the averages of the weights now, where there are any
    average_fields: tuple[Array, Array] | None = None  # the covariances of their fields, where inputs have a spectrum
    heads: Array | None = None  # the second layers (n, H, p) of all tasks now, where several are trained

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self._drift_error = np.full(len(replicas), np.nan)  # the largest so far
        self._bounds: tuple[Bound, ...] = ()

    @cached_property
    def Q(self) -> Array:
        """The current overlaps of students (n, p, p)."""
        return self.replicas.Q.copy()

    @cached_property
    def M(self) -> Array:
        """The current overlaps of students and teachers (n, p, k)."""
        return self.replicas.M.copy()

    @cached_property
    def by_block(self) -> tuple[Array, Array] | None:
        """The current Q (n, L, p, p) and M (n, L, p, k) of the blocks of inputs; None if these have one eigenvalue."""
        start = self.replicas
        return (start.blocks.Q.copy(), start.blocks.M.copy()) if start.has_spectrum else None

    @property
    def fields(self) -> tuple[Array, Array, Array]:
        """The current covariances Q (n, p, p), M (n, p, k) and P (n, k, k) of the fields."""
        if self.by_block is None:
            return self.Q, self.M, self.replicas.P
        return self._blocks(*self.by_block).weighted()

    def _blocks(self, Q: Array, M: Array) -> Blocks:
        """Overlaps Q (n, L, p, p) and M (n, L, p, k) of blocks, with the teacher's and the eigenvalues."""
        return Blocks(self.replicas.eigenvalues, Q, M, self.replicas.blocks.P)

    @cached_property
    def a(self) -> Array:
        """The student's current second layer (n, p)."""
        return self.replicas.a.copy()

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks, by its number: with the second layers of teacher and student of its task."""
        self.replicas = self.replicas.at_phase(phase, self.a, self.heads)
        self.a = self.replicas.a.copy()

    def look(self) -> list[tuple[Array, View]]:
        """The view of the current overlaps; its one part has the weight one in each replica."""
        view = self.overlap_view(lambda: self.Q, lambda: self.M, self.a, by_block=lambda: self.by_block)
        view.companion, view.average = self.second_view, lambda: self.average
        view.average_fields = lambda: self.average_fields
        return [(np.ones(len(self.replicas)), view)]

    def second_view(self) -> tuple[OverlapView, float] | None:
        """The view of a companion, a second solution by a finer rule, and a factor; None without a companion.

        The error of an observable of this solution is the factor times its difference to that of the companion.
        """
        return None

    def overlap_view(
        self, Q: Lazy, M: Lazy, a: Array, q: Lazy | None = None, by_block: Callable[[], Any] = lambda: None
    ) -> OverlapView:
        """The view of the replicas at overlaps that need not be the current ones, with all that observables read.

        Q, M, q : overlaps and the diagonal of Q, or functions that return them. a (n, p) : second layers.
        by_block : function that returns Q (n, L, p, p) and M (n, L, p, k) of the blocks of inputs, or None.
        """
        replicas = self.replicas
        of_problem, steps = (replicas.Delta, replicas.population), (replicas.d, replicas.batch_size)
        view = OverlapView(Q, M, replicas.P, a, replicas.a_star, *of_problem, q, *steps, replicas.refitted)
        view.of_labels, view.gamma = replicas.of_labels, replicas.gamma
        view.second_layer_rate = replicas.parameters["second_layer_rate"]
        if (lessons := replicas.lessons) is not None:
            view.by_task = lambda: lessons.layers(a, self.heads)
        if replicas.has_spectrum:
            view.by_block = lambda: self._blocks(*by_block())
        return view

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`risk_error` if a risk without exact form is recorded, and `drift_error` if the drifts are by quadrature."""
        errors, expectations = {}, problem_expectations(problem)
        if OF_RISK.intersection(observables) and (problem.has_offsets or not expectations.exact):
            comment = "of quadrature, estimated by finer rules, and of activations as sums of error functions"
            errors["risk_error"] = Diagnostic((), RISK_ERROR | {"comment": comment})
        if cls.uses_drifts and not (expectations.exact and (problem.has_closed_drifts or not cls.drifts_of_updates)):
            comment = "largest at a recording time, over the largest drift; by a finer rule, and form bounds"
            attrs = {"long_name": "error of the drifts", "units": "1", "comment": comment}
            errors["drift_error"] = Diagnostic((), attrs, over_time=False)
        return errors

    def diagnosed(self) -> Mapping[str, Lazy]:
        """The error of the risk now, and the largest error of the drifts so far, if these have no closed form."""
        replicas, error = self.replicas, self.risk_errors()
        values = {} if error is None else {"risk_error": error}
        if self.uses_drifts and not (replicas.equations if self.drifts_of_updates else replicas.expectations).exact:
            self._drift_error = np.fmax(self._drift_error, self.drift_errors(self.fields, self.a, self.end_time))
            values["drift_error"] = self._drift_error
        return values

    def drift_errors(self, fields: tuple[Array, Array, Array], a: Array, times: Array) -> Array:
        """The errors (n,) of the drifts that the dynamics uses, at covariances of `fields`, a (n, p), ODE `times`."""
        return self.replicas.drift_errors(fields, a, times)

    def risk_errors(self) -> Array | None:
        """The error (n,) of the present risk, of quadrature and rounding; None if the risk has an exact form.

        It also sets the bounds that `bounds` returns.
        """
        if self.replicas.expectations.exact and not self.replicas.has_offsets:
            return None
        return self._total_risk_errors(np.zeros(len(self.replicas)))

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def _total_risk_errors(self, others: Array) -> Array:
        """The error (n,) of the present risk: `others` (n,), of the solution, and those of quadrature and rounding.

        It also sets what `bounds` returns: the bounds of the risk with this error.
        """
        [(_, now)] = self.look()
        assert isinstance(now, OverlapView)
        now = now.fields
        state = (now.Q, now.M, now.P, now.a, now.a_star)
        risk = now.expectations.risks(*state)
        terms = np.fmax(self.replicas.risk_scales, np.abs(risk))
        error = others + now.expectations.risk_errors(risk, *state) + ROUNDING * terms
        self._bounds = risk_bounds(risk, error, terms)
        return error

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the risk, where it has an error."""
        return self._bounds
