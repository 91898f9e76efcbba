"""Dynamics: the state of n replicas, which can be advanced to a recording time."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.run_names import kind_of
from sweeplib.errors import InputError, SweeplibError
from sweeplib.networks.dynamics.diagnostics import OF_RISK, RISK_ERROR, ROUNDING, Bound, Diagnostic, risk_bounds
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import PARAMETERS, READERS, Problem, parts_of, problem_expectations
from sweeplib.networks.views import Blocks, Lazy, OverlapView, View


class NumericalOptions(BaseModel):
    """The numerical options of a dynamics; none by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Dynamics(ABC):
    """The state of n replicas under one dynamics. Subclasses define the state.

    running (n,) : false once a replica has stopped at its last exit, diverged, timed out or become inaccurate.
    diverged, timed_out, inaccurate (n,) : flags.
    exit_steps, exit_time (n, thresholds) : exits, NaN where not reached.
    end_steps, end_time (n,) : last step and time simulated.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    view: ClassVar[type[View]]
    """The class of the views that `look` returns."""
    reads: ClassVar[frozenset[str]]
    """The parameters of a problem that the dynamics depends on. A problem that sets another one is refused.

    Problems that differ only in those that neither the dynamics nor an observable reads are one case. If `target`,
    `start` and `data` are included, so are those that the problem's target, start and data law act on.
    """
    replicas_at_once: ClassVar[int]
    """The number of replicas that one instance advances."""
    lanes: ClassVar[tuple[int, int]] = (1, 1)
    """(fewest, most): replicas are computed in groups of up to `most`, padded with copies to a multiple of `fewest`."""
    Options: ClassVar[type[NumericalOptions]] = NumericalOptions
    stochastic: ClassVar[bool] = True
    """Whether two seeds with the same start may differ."""
    uses_drifts: ClassVar[bool] = False
    """Whether the dynamics uses the drifts of the overlaps; then the error of their quadrature is recorded."""
    drifts_of_updates: ClassVar[bool] = True
    """Whether these are means of rescaled gradients, where the update rescales them."""
    sampled: ClassVar[bool] = False
    """Whether it is a path without noise, computed with random samples: then seeds differ by its errors only."""
    batches: ClassVar[int] = 0
    """The number of batches of samples that its view has, whose scatter is recorded as the error of each observable."""
    takes_spectra: ClassVar[bool] = False
    """Whether it has the overlaps of each block where inputs have several eigenvalues, and acts on such data laws."""
    counts_steps: ClassVar[bool] = True
    """Whether a step of SGD takes some of its time; a limit of steps of no time counts none."""
    law_of: ClassVar[str | None] = None
    """The name of another dynamics if its results have the same law; the tests of dynamics compare both."""
    samples_of: ClassVar[str | None] = None
    """The name of another dynamics whose samples it has with the same seed; None for samples of its own."""
    states_exit_errors: ClassVar[bool] = False
    """Whether it has `exit_time_error`, `exit_steps_error` (n, thresholds), recorded with the exits."""
    cost_seconds: ClassVar[tuple[float, float, float]] = (1e-10, 0.0, 0.0)
    """Seconds of a unit of `work`, of a step, and of a unit of the student in a step, on one core of 3 GHz.

    A model, the same on every machine: the `cost` in `when`, by which the cheapest simulator is taken."""
    unaffected_by: ClassVar[frozenset[str]] = frozenset()
    """Of "times" (but the last) and "thresholds", those on which no bit of its path depends, as tests compare: its
    results are then taken from a run that recorded more of them."""

    running: NDArray[np.bool_]
    diverged: NDArray[np.bool_]
    timed_out: NDArray[np.bool_]
    inaccurate: NDArray[np.bool_]

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        self.replicas = replicas
        self.options = options
        count = len(replicas)
        self.running = np.ones(count, dtype=bool)
        self.diverged = np.zeros(count, dtype=bool)
        self.timed_out = np.zeros(count, dtype=bool)
        self.inaccurate = np.zeros(count, dtype=bool)

    @abstractmethod
    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Advance the running replicas to recording time number `to`, or give up at the `deadline` of `clock`."""

    @property
    @abstractmethod
    def exit_steps(self) -> Array:
        """Steps at which each threshold was first reached (n, thresholds), NaN where it was not."""

    @property
    @abstractmethod
    def end_steps(self) -> Array:
        """The last step simulated (n,)."""

    @abstractmethod
    def look(self) -> list[tuple[Array, View]]:
        """Pairs of weights (n,) and views; an observable is recorded as its weighted sum over the pairs.

        A view is valid until the state is advanced again. Most dynamics return one view with weight one.
        """

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks of the replicas; for dynamics that read `tasks`."""
        raise NotImplementedError

    def diagnosed(self) -> Mapping[str, Array]:
        """The current values (n, *dims) of the `diagnostics`, and possibly of others, which are not recorded."""
        return {}

    def bounds(self) -> Sequence[Bound]:
        """The bounds of errors and results now: a replica beyond one ends as inaccurate. None by default.

        It is called once at every recording time, after `diagnosed`.
        """
        return ()

    def exit_bounds(self) -> Sequence[Bound]:
        """The bounds of the errors of exits so far, wherever a replica is now. None by default."""
        return ()

    def reached(self, to: int) -> NDArray[np.bool_]:
        """Which replicas (n,) were simulated up to recording time number `to`."""
        return self.end_time >= self.replicas.times[:, to]

    def end_state(self) -> Array:
        """The states (n, `state_size`) now, from which running replicas can go on."""
        raise NotImplementedError

    def go_on(self, earlier: Mapping[str, Array]) -> None:
        """Go on, to the bit, from where runs with earlier last times ended, whose records these are."""
        raise NotImplementedError

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds)."""
        return self.exit_steps * self.replicas.step_time[:, None]

    @property
    def end_time(self) -> Array:
        """The last ODE time simulated (n,)."""
        return self.end_steps * self.replicas.step_time

    @staticmethod
    @abstractmethod
    def work(problem: Problem, time: float) -> float:
        """Nominal floating-point operations to ODE time `time`, the same on every machine."""

    @staticmethod
    def memory(problem: Problem, options: NumericalOptions) -> int:
        """The bytes of the large arrays that a replica has in memory; by default none that count."""
        return 0

    @staticmethod
    def step_length(problem: Problem | Replicas, options: NumericalOptions) -> float:
        """The number of SGD steps per step of the dynamics; `work` is divided by it."""
        return 1.0

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The numbers of the state from which a run goes on to a later last time; 0, the default, if it does not."""
        return 0

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Whether its exits, with these options, may be on another observable than the risk (`Replicas.levels`)."""
        return False

    @classmethod
    def most_steps(cls, problem: Problem, options: NumericalOptions) -> float:
        """The largest number of its steps to the last recording time; a run of more is refused."""
        return np.inf

    @classmethod
    def sizes(cls, problem: Problem, options: NumericalOptions) -> dict[str, int]:
        """The lengths of its view's dimensions other than `instant`; by default those that the view determines."""
        return cls.view.sizes(problem)

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """The quantities that it records in addition to the observables, by name."""
        return {}

    @classmethod
    def reads_of(cls, problem: Problem, options: NumericalOptions) -> frozenset[str]:
        """The fields of a problem that it, with these options, its target, its start and its data law depend on."""
        reads = cls.reads | ({"data"} if cls.takes_spectra and problem.has_spectrum else set())
        return reads.union(*(part.acts_on for kind, part in parts_of(problem).items() if kind in reads))

    @classmethod  # noqa: B027 - most dynamics apply to every problem
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError if the dynamics does not apply to the problem with these options."""

    @staticmethod
    def clock() -> float:
        """Seconds on the clock of deadlines."""
        return time.monotonic()


class OverlapDynamics(Dynamics):
    """A dynamics whose attributes `Q` (n, p, p), `M` (n, p, k) and `a` (n, p) are the current overlaps.

    They are initialised on first use, from the starts of the replicas.
    """

    view: ClassVar[type[View]] = OverlapView
    heads: Array | None = None  # the second layers (n, H, p) of all tasks now, where several are trained

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self._drift_error = np.full(len(replicas), np.nan)
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
        """The current covariances Q, M, P of the fields."""
        if self.by_block is None:
            return self.Q, self.M, self.replicas.P
        return self._blocks(*self.by_block).weighted()

    def _blocks(self, Q: Array, M: Array) -> Blocks:
        return Blocks(self.replicas.eigenvalues, Q, M, self.replicas.blocks.P)

    @cached_property
    def a(self) -> Array:
        """The student's current second layer (n, p)."""
        return self.replicas.a.copy()

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks: with the teacher's second layer, and the student's, of its task."""
        self.replicas = self.replicas.at_phase(phase, self.a, self.heads)
        self.a, self._terms = self.replicas.a.copy(), None

    def look(self) -> list[tuple[Array, View]]:
        """The current overlaps, with weight one."""
        view = self.overlap_view(lambda: self.Q, lambda: self.M, self.a, by_block=lambda: self.by_block)
        view.companion = self.second_view
        return [(np.ones(len(self.replicas)), view)]

    def second_view(self) -> tuple[OverlapView, float] | None:
        """The view of a second solution, and the error of this one over the difference to it; None without one."""
        return None

    def overlap_view(
        self, Q: Lazy, M: Lazy, a: Array, q: Lazy | None = None, by_block: Callable[[], Any] = lambda: None
    ) -> OverlapView:
        """The view of the given overlaps of the replicas; `by_block` returns those of the blocks of inputs."""
        replicas = self.replicas
        of_problem = replicas.Delta, replicas.population
        steps = replicas.d, replicas.batch_size
        view = OverlapView(Q, M, replicas.P, a, replicas.a_star, *of_problem, q, *steps, replicas.refitted)
        view.of_labels = replicas.of_labels
        if (lessons := replicas.lessons) is not None:
            view.by_task = lambda: lessons.layers(a, self.heads)
        if replicas.has_spectrum:
            view.by_block = lambda: self._blocks(*by_block())
        return view

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`risk_error` where a risk without exact form is recorded, `drift_error` of drifts by quadrature."""
        errors, expectations = {}, problem_expectations(problem)
        if OF_RISK.intersection(observables) and (problem.has_offsets or not expectations.exact):
            comment = "of quadrature, estimated by finer rules, and of activations as sums of error functions"
            errors["risk_error"] = Diagnostic((), RISK_ERROR | {"comment": comment})
        if cls.uses_drifts and not (expectations.exact and (problem.has_closed_drifts or not cls.drifts_of_updates)):
            rule = {"comment": "largest at a recording time, over the largest drift; by a finer rule, and form bounds"}
            errors["drift_error"] = Diagnostic((), {"long_name": "error of the drifts", "units": "1"} | rule, False)
        return errors

    def diagnosed(self) -> Mapping[str, Array]:
        """The error of the risk now, and the largest error of the drifts so far, if these have no closed form."""
        replicas, error = self.replicas, self.risk_errors()
        values = {} if error is None else {"risk_error": error}
        if self.uses_drifts and not (replicas.equations if self.drifts_of_updates else replicas.expectations).exact:
            self._drift_error = np.fmax(self._drift_error, self.drift_errors(self.fields, self.a, self.end_time))
            values["drift_error"] = self._drift_error
        return values

    def drift_errors(self, fields: tuple[Array, Array, Array], a: Array, times: Array) -> Array:
        """The errors (n,) of the drifts that it uses, at some state of the replicas."""
        return self.replicas.drift_errors(fields, a, times)

    def risk_errors(self) -> Array | None:
        """The error (n,) of the present risk: of quadrature or forms, and rounding; None for exact forms."""
        if self.replicas.expectations.exact and not self.replicas.has_offsets:
            return None
        return self._judged(np.zeros(len(self.replicas)))

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def _judged(self, others: Array) -> Array:
        """The error (n,) of the present risk with its `others`; the risk and it have `bounds`."""
        [(_, now)] = self.look()
        assert isinstance(now, OverlapView)
        now = now.fields
        state = (now.Q, now.M, now.P, now.a, now.a_star)
        risk = now.expectations.risks(*state)
        terms = np.fmax(self.replicas.risk_terms, np.abs(risk))
        error = others + now.expectations.risk_errors(risk, *state) + ROUNDING * terms
        self._bounds = risk_bounds(risk, error, terms)
        return error

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the risk, where it has an error."""
        return self._bounds


ONE_PASS = frozenset(
    {"gamma", "p", "k", "d", "Delta", "activation", "teacher_activation", "spherical", "a", "a_star", "target"}
    | {"second_layer_rate", "start", "teacher_start"}
)
"""The parameters read by dynamics that take a fresh sample of a teacher a step at a constant rate, or their limits."""

OFFSETS = frozenset({"offset_scale", "offset_rate"})
"""The parameters that give units offsets."""

LOSS = frozenset({"loss", "labels"})
"""The parameters that give the loss, and what a label is."""

UPDATE = frozenset({"update"})
"""The parameter that says what a step makes of the gradient."""

NOISE = frozenset({"noise_schedule", "keep_probability", "input_noise"})
"""The parameters of noise other than constant noise of labels: its schedule, dropout, noise of inputs."""

DECAYS = frozenset({"weight_decay", "second_layer_decay"})
"""The parameters by which weights and the second layer decay."""

STEPS = DECAYS | LOSS | UPDATE | NOISE
"""The parameters of the steps of SGD, beyond those of `ONE_PASS`."""


def _checked(name: str, kind: type[Dynamics]) -> None:
    """Raise SweeplibError for a dynamics without `reads` or `view`."""
    reads = getattr(kind, "reads", None)
    if not isinstance(reads, frozenset):
        wanted = "`reads = frozenset({...})`, or `reads = ONE_PASS`, those of steps with one fresh sample of a teacher"
        raise SweeplibError(f"dynamics {name!r} must name the fields of a problem that it acts on: {wanted}")
    if unknown := sorted(reads.difference(PARAMETERS)):
        raise InputError(f"dynamics {name!r} reads no field of a problem", value=unknown[0], choices=PARAMETERS)
    if not hasattr(kind, "view"):
        raise SweeplibError(f"dynamics {name!r} must name its `view`, such as OverlapView")
    if "-" in name:
        raise SweeplibError(f"dynamics {name!r}: what follows a hyphen tells runs of one dynamics apart")


class _DynamicsOfRuns(Registry[type[Dynamics]]):
    """The dynamics by the names of runs: `ode-corrected` is a run of `ode` beside another one."""

    def __getitem__(self, name: str) -> type[Dynamics]:
        return super().__getitem__(kind_of(name))

    def origin(self, name: str) -> str:
        """Return the name of the module that registered the dynamics of a run."""
        return super().origin(kind_of(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(kind_of(name) if isinstance(name, str) else name)


DYNAMICS: Registry[type[Dynamics]] = _DynamicsOfRuns("dynamics", check=_checked)
READERS["dynamics"] = lambda problem: {name: kind.reads_of(problem, kind.Options()) for name, kind in DYNAMICS.items()}
