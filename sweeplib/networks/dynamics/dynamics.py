"""Dynamics: the state of n replicas, which can be advanced to a recording time.

The driver (`simulation/driver.py`) makes an instance from replicas, and for each recording time, in order, calls
`advance`, `look`, `diagnosed` and `bounds`. Steps are those of SGD, ν; times are ODE times t = νγ/(pd).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.process.work_time import seconds_but_compilation
from sweeplib.engine.run_names import kind_of
from sweeplib.errors import InputError, SweeplibError
from sweeplib.networks.dynamics.diagnostics import Bound, Diagnostic
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import bends_off_zero
from sweeplib.networks.problem import PARAMETERS, READERS, TAILS, Limit, Problem, parts_of
from sweeplib.networks.problem.combinations import UNRESOLVED
from sweeplib.networks.views import Lazy, View


class NumericalOptions(BaseModel):
    """The numerical options of a dynamics; none by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Dynamics(ABC):
    """The state of n replicas under one dynamics. Subclasses define the state.

    running (n,) : false once a replica has stopped at its last exit, diverged, timed out or become inaccurate.
    diverged, timed_out, inaccurate (n,) : why a replica has stopped, if by none of these at an exit.
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
    undefined: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of names of parameters, with spaces between, and a clause why these mean nothing in it: it reads none."""
    limits: ClassVar[tuple[Limit, ...]] = ()
    """What it does not take of the parameters that it reads, each alone or beside a feature of the problem."""
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
    """Whether the drifts that it uses are means of rescaled gradients, where the update rescales gradients."""
    sampled: ClassVar[bool] = False
    """Whether it computes a path without noise by random samples: then seeds differ by errors of the samples only."""
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
    results are then taken from a run that recorded more of them.

    By them an integrator may take the linearised flow near a rest earlier or later, which changes a rounding."""

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
        """The number of SGD steps simulated so far (n,), which need not be whole."""

    @abstractmethod
    def look(self) -> list[tuple[Array, View]]:
        """Pairs of weights (n,) and views of the state; an observable is recorded as its weighted sum over the pairs.

        A view is valid until the state is advanced again. Most dynamics return one view with weight one.
        """

    def begin_phase(self, phase: int) -> None:
        """Begin phase number `phase` of the tasks of the replicas; for dynamics that read `tasks`."""
        raise NotImplementedError

    def diagnosed(self) -> Mapping[str, Lazy]:
        """The current values (n, *dims) of the `diagnostics`, by name; of others none is recorded."""
        return {}

    def bounds(self) -> Sequence[Bound]:
        """The bounds of errors and results now: a replica beyond one ends as inaccurate. None by default.

        It is called once at every recording time, after `diagnosed`.
        """
        return ()

    def exit_bounds(self) -> Sequence[Bound]:
        """The bounds of the errors of all exits so far, also of replicas that have stopped. None by default."""
        return ()

    def reached(self, to: int) -> NDArray[np.bool_]:
        """Which replicas (n,) were simulated up to recording time number `to`."""
        return self.end_time >= self.replicas.times[:, to]

    def end_state(self) -> Array:
        """The flat states (n, `state_size`) now, which are stored, and from which runs go on to later last times."""
        raise NotImplementedError

    def go_on(self, earlier: Mapping[str, Array]) -> None:
        """Go on, to the bit, from where runs of the replicas with earlier last times ended; called before `advance`.

        earlier : what these runs recorded (n, ...), by name, `end_state` among it.
        """
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
        """The nominal floating-point operations of a run to ODE time `time`, the same on every machine.

        It is a rough count, for which pilots find the seconds: how it grows with time and sizes is what matters.
        """

    @staticmethod
    def memory(problem: Problem, options: NumericalOptions) -> int:
        """The bytes of the large arrays that a replica has in memory; by default 0, as none counts."""
        return 0

    @staticmethod
    def step_length(problem: Problem | Replicas, options: NumericalOptions) -> float:
        """The number of SGD steps per step of the dynamics; `work` is divided by it."""
        return 1.0

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The count of numbers in `end_state`, from which runs go on to later last times; by default 0: they do not."""
        return 0

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Whether its exits, with these options, may be on another observable than the risk (`Replicas.levels`)."""
        return False

    @classmethod
    def solves_all_rates(cls, problem: Problem, options: NumericalOptions) -> bool:
        """Whether γ does no more than to turn ODE times into steps: then cases that differ in γ alone are solved once.

        By default γ does more.
        """
        return False

    @classmethod
    def step_time(cls, problem: Problem, options: NumericalOptions) -> float:
        """The ODE time of a step of SGD, as `exit_steps` and `end_steps` are rounded, if it `solves_all_rates`."""
        return problem.step_time()

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
        """The quantities that it records beside the `observables` (names), such as errors; by name. None by default."""
        return {}

    @classmethod
    def reads_of(cls, problem: Problem, options: NumericalOptions) -> frozenset[str]:
        """The parameters that it depends on with these options, also by the problem's target, start and data law."""
        reads = cls.reads | ({"data"} if cls.takes_spectra and problem.has_spectrum else set())
        return reads.union(*(part.acts_on for kind, part in parts_of(problem).items() if kind in reads))

    @classmethod
    def meaningless(cls) -> dict[str, str]:
        """Return, by parameter, a clause why it means nothing in the dynamics (`undefined`)."""
        return {name: why for names, why in cls.undefined for name in names.split()}

    @classmethod
    def limits_of(cls, options: NumericalOptions) -> tuple[Limit, ...]:
        """The limits with these options; by default `limits`, with any."""
        return cls.limits

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError if the dynamics does not apply to the problem with these options: it is beyond a limit."""
        for limit in (*cls.limits_of(options), *(OF_DRIFTS if cls.uses_drifts else ())):
            limit.refuse(problem)

    @staticmethod
    def clock() -> float:
        """Return the seconds on the clock of deadlines, without compilation; tests put another clock in its place."""
        return seconds_but_compilation()


ONE_PASS = frozenset(
    {"gamma", "p", "k", "d", "Delta", "activation", "teacher_activation", "spherical", "a", "a_star", "target"}
    | {"second_layer_rate", "start", "teacher_start"}
)
"""The parameters read by dynamics that take a fresh sample of a teacher a step at a constant rate, or their limits."""

OFFSETS = frozenset({"offset_scale", "offset_rate"})
"""The parameters that give units offsets."""

LOSS = frozenset({"loss", "labels"}) | TAILS
"""The parameters that give the loss, and what a label and its noise are."""

UPDATE = frozenset({"update"})
"""The parameter that says what a step makes of the gradient."""

NOISE = frozenset({"noise_schedule", "keep_probability", "input_noise", "temperature"})
"""The parameters of noise other than constant noise of labels: its schedule, dropout, noise of inputs, of weights."""

DECAYS = frozenset({"weight_decay", "second_layer_decay"})
"""The parameters by which weights and the second layer decay."""

STEPS = DECAYS | LOSS | UPDATE | NOISE
"""The parameters of the steps of SGD, beyond those of `ONE_PASS`."""


def _without_drifts(_: Problem) -> str:
    """Return in words which dynamics take an activation without drifts."""
    others = ", ".join(name for name in DYNAMICS if not DYNAMICS[name].uses_drifts)
    return f"one without kinks off zero, or a dynamics that does not use drifts: {others}"


_NO_DRIFTS = "kinks off zero have no drifts", _without_drifts, UNRESOLVED
# an error names the activation that has the kinks, or else the target
OF_DRIFTS = (
    Limit("activation", *_NO_DRIFTS, lambda problem: bends_off_zero(activation(problem.activation))),
    Limit("teacher_activation", *_NO_DRIFTS, lambda problem: bends_off_zero(activation(problem.teacher))),
    Limit("target", *_NO_DRIFTS),
)
"""The limits of dynamics that use drifts: of a target that kinks, as no activation does, or a committee of kinks."""


def _checked(name: str, kind: type[Dynamics]) -> None:
    """Raise SweeplibError for a registered class without `reads`, InputError if it reads what is no parameter."""
    reads = getattr(kind, "reads", None)
    if not isinstance(reads, frozenset):
        wanted = "`reads = frozenset({...})`, or `reads = ONE_PASS`, those of steps with one fresh sample of a teacher"
        raise SweeplibError(f"dynamics {name!r} must name the fields of a problem that it acts on: {wanted}")
    if unknown := sorted(reads.difference(PARAMETERS)):
        raise InputError(f"dynamics {name!r} reads no field of a problem", value=unknown[0], choices=PARAMETERS)
    if "-" in name:
        raise SweeplibError(f"dynamics {name!r}: what follows a hyphen tells runs of one dynamics apart")


class _DynamicsOfRuns(Registry[type[Dynamics]]):
    """The dynamics by the names of runs, of which a part before a hyphen names the dynamics: `ode-corrected` is an ODE.

    So a sweep can have two runs of one dynamics, with other options.
    """

    def __getitem__(self, name: str) -> type[Dynamics]:
        return super().__getitem__(kind_of(name))

    def origin(self, name: str) -> str:
        """Return the name of the module that registered the dynamics of a run."""
        return super().origin(kind_of(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(kind_of(name) if isinstance(name, str) else name)


DYNAMICS: Registry[type[Dynamics]] = _DynamicsOfRuns("dynamics", check=_checked, contract=Dynamics)
"""All dynamics by name; a run of a sweep, `NAME` or `NAME-SUFFIX`, finds its dynamics too."""
READERS["dynamics"] = lambda problem: {name: kind.reads_of(problem, kind.Options()) for name, kind in DYNAMICS.items()}
