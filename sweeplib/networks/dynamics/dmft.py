"""Full-batch gradient descent on a reused data set in the limit d → ∞ at fixed α = n/d: dynamical mean-field theory.

`batch_size` and `samples` are n; α = n/d and the length γ/(pd) of a step are all that depends on d, apart from the
start, which is that of the replica. A sample obeys an effective process (`effective_process`), which is simulated. The
samples are `BATCHES` independent sets of randomised Sobol' points, each with the feedback of its own overlaps. The mean
over the batches is recorded, and its standard error. A run with a mean that they do not determine is inaccurate.

The whole trajectory of a replica, the `History` of each batch, is computed at once; `step` (n,) says what is shown.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import OF_RISK, RISK_ERROR, Bound, Diagnostic
from sweeplib.networks.dynamics.dynamics import DECAYS, DYNAMICS, ONE_PASS, NumericalOptions
from sweeplib.networks.dynamics.effective_process import History, Setting, effective_history
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.dynamics.weight_dynamics import full_batch
from sweeplib.networks.maths.overlaps import split_factors
from sweeplib.networks.problem import TAILS, Problem
from sweeplib.networks.views import Lazy, TwoTimeView, View

BATCHES = 32
"""Number of sets of samples: enough for errors of skewed means, such as those of high polynomials."""
SAMPLES_A_DIRECTION = 32
"""The fewest samples of a batch per direction of the weights; the mean over batches has a bias of order 1/samples."""
MOST_BYTES = 2**30
"""The largest memory for the samples of a batch."""

LARGEST_TAIL_INDEX, LARGEST_SHARE = 0.7, 0.5
"""The largest tail index of the squares of which steps and training risk are means, and the largest share of one sample
in the mean of a batch.

Above this index samples do not determine their mean (Vehtari et al., J. Machine Learning Research 25, 72 (2024)).
"""

MADE_OF = {
    "risk_error": OF_RISK | {"test_loss"},
    "training_risk_error": frozenset({"training_risk", "generalisation_gap"}),
}
"""The errors that have bounds, and the observables with which they are recorded; other errors are of the batches."""


def path_work(p: int, k: int, steps: float, step: float) -> float:
    """The work of a sample up to step number `step` of `steps`: all its normals, activations and products so far."""
    return 350.0 * (1 + k + p * (steps + 1)) + (step + 1) * p * (200.0 + 4.0 * k) + 8.0 * (p * step) ** 2


class DmftOptions(NumericalOptions):
    """Options of the effective process.

    paths : number of its samples, best a power of two; errors fall at least as its square root.
    """

    paths: int = Field(default=2**19, ge=2**13, le=2**24)


class Dmft(StepDynamics):
    """The deterministic trajectory of each replica, by samples of its effective process."""

    name = "dmft"
    label = "DMFT"
    view = TwoTimeView
    sampled, batches = True, BATCHES
    replicas_at_once = 1
    reads = ONE_PASS | {"batch_size", "samples"} | DECAYS
    undefined = (
        ("repeats sampling", "each step takes all samples"),
        ("noise_schedule", "labels are drawn once"),
        (" ".join(sorted(TAILS)), "its labels are Gaussian"),
    )
    limits = full_batch("dmft")
    unaffected_by = frozenset({"times", "thresholds"})
    Options = DmftOptions
    options: DmftOptions

    def __init__(self, replicas: Replicas, options: DmftOptions) -> None:
        super().__init__(replicas, options)
        self._batches: list[list[History]] = [[] for _ in range(len(replicas))]
        # the steps of exits of whole paths, also beyond the present time; −1 for none
        self._found_exits = np.full_like(self.exits, -1)
        self._done = np.zeros(len(replicas))  # the part of each replica's work that was done
        self._training_bounds: tuple[Bound, ...] = ()

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Compute each replica's whole trajectory at the first call, and go to recording time number `to`."""
        for i in np.flatnonzero(self.running):
            if not self._batches[i]:
                self._compute(int(i), deadline)
        for i in np.flatnonzero(self.running):
            end = self._last(int(i))
            self.step[i] = min(self.until[i, to], end)
            self.failed[i] = end if end < self.until[i, to] else -1
            self.exits[i] = np.where(self._found_exits[i] <= self.step[i], self._found_exits[i], -1)
        self.stop()

    def _compute(self, i: int, deadline: float) -> None:
        """Compute the history of each batch of replica i, and its exits; give up at the deadline."""
        replicas = self.replicas
        parts = split_factors(*(array[i : i + 1] for array in (replicas.Q, replicas.M, replicas.P)))
        L_star, A, B = (array[0] for array in parts)
        setting = Setting(
            replicas.activation,
            replicas.teacher_activation,
            replicas.target,
            replicas.spherical,
            float(replicas.samples[i] / replicas.d[i]),
            replicas.numbers_of(i),
            replicas.a[i],
            replicas.a_star[i],
            np.block([[L_star, np.zeros((replicas.k, replicas.p))], [A, B]]),
        )
        steps, paths = int(self.until[i, -1]), self.options.paths // BATCHES
        histories: list[History] = []

        def late(step: int) -> bool:
            """Note how far this replica's computation is, by its work, and return whether the time is over."""
            of_batch = path_work(replicas.p, replicas.k, steps, step) / path_work(replicas.p, replicas.k, steps, steps)
            self._done[i] = (len(histories) + of_batch) / BATCHES
            return self.clock() > deadline

        for batch in range(BATCHES):
            stream = int(replicas.keys[i]), int(replicas.seeds[i]), batch
            history = effective_history(setting, steps, paths, stream, late)
            # a deadline that is over when the last batch is whole takes nothing away
            if history is None or (late(steps) and batch < BATCHES - 1):
                self.timed_out[i], self.running[i] = True, False
                return
            histories.append(history)
        self._batches[i] = histories
        if replicas.thresholds.size:
            self._find_exits(i)

    def _find_exits(self, i: int) -> None:
        """Note the first steps of replica i at which the risk of the mean of its batches is below the targets."""
        below = self._risks(i, slice(None))[:, None] <= self.targets[i]
        self._found_exits[i] = np.where(below.any(axis=0), below.argmax(axis=0), -1)

    def _last(self, i: int) -> int:
        """The last step of replica i that every batch reached: the last of all, or the one before a divergence."""
        return min(len(history.a) for history in self._batches[i]) - 1

    def _stacked(self, i: int, name: str) -> Array:
        """An array of the histories of replica i (batches, steps, ...), by name in `History`; NaN if it timed out."""
        p, k, last = self.replicas.p, self.replicas.k, 0
        if self._batches[i]:
            last = self._last(i)
            return np.array([getattr(history, name)[: last + 1] for history in self._batches[i]])
        shapes = {"Q": (p, p), "M": (p, k), "a": (p,), "training_risk": (), "tails": (p, 2), "training_tails": (1, 2)}
        return np.full((BATCHES, 1, *shapes[name]), np.nan)

    def _risks(self, i: int, steps: slice) -> Array:
        """The population risks of replica i at the overlaps after some `steps`, the means of the batches."""
        Q, M, a = (self._stacked(i, name)[:, steps].mean(axis=0) for name in ("Q", "M", "a"))
        return self._risks_of(i, Q, M, a)

    def _risks_of(self, i: int, Q: Array, M: Array, a: Array) -> Array:
        """The population risks (m,) of replica i at m overlaps Q (m, p, p), M (m, p, k), and a (m, p)."""
        P, a_star = (np.repeat(array[i : i + 1], len(Q), axis=0) for array in (self.replicas.P, self.replicas.a_star))
        return self.replicas.expectations.risks(Q, M, P, a, a_star)

    def _now(self, name: str) -> Array:
        """An array of all batches after the present steps (n, batches, ...), by its name in `History`."""
        return np.array([self._stacked(i, name)[:, step] for i, step in enumerate(self.step)])

    def _two_times(self, name: str) -> Array:
        """The `C` or `R` of now and each recording time, by batch (n, batches, times, p, p); NaN for later times."""
        p, (count, times) = self.replicas.p, self.until.shape
        out = np.full((count, BATCHES, times, p, p), np.nan)
        for i, step in enumerate(self.step):
            past = self.until[i] <= step
            for batch, history in enumerate(self._batches[i]):
                out[i, batch, past] = getattr(history, name)[step, self.until[i, past]]
        return out

    def reached(self, to: int) -> np.ndarray:
        """Which replicas (n,) took all steps to recording time number `to`."""
        return super().reached(to) & ~self.timed_out

    @property
    def end_steps(self) -> Array:
        """Steps taken by each replica (n,); of one that timed out, the part of its work that was done, in steps."""
        return np.where(self.timed_out, self._done * self.until[:, -1], super().end_steps)

    def look(self) -> list[tuple[Array, View]]:
        """One view with weight one: of the means over the batches, with views of all batches, for their scatter."""
        two_times = cache(self._two_times)
        Q, M, a, training_risk = map(self._now, ("Q", "M", "a", "training_risk"))

        def view(of: Callable[[Array], Array], **more: Any) -> TwoTimeView:
            """Return the view of what `of` makes of arrays (n, batches, ...): a mean over batches, or one of them."""
            overlaps, risk = self.overlap_view(of(Q), of(M), of(a)), of(training_risk)
            return TwoTimeView(overlaps, lambda: of(two_times("C")), lambda: of(two_times("R")), risk, **more)

        def batches() -> list[TwoTimeView]:
            """Return the views of single batches."""
            return [view(itemgetter((slice(None), at))) for at in range(BATCHES)]

        return [(np.ones(len(self.replicas)), view(lambda values: values.mean(axis=1), batches=batches))]

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """The standard errors of risk and training risk, from the scatter of the batches, if they are recorded."""
        rule = {"comment": f"standard error, from {BATCHES} independent batches of samples"}
        of_training = {"long_name": "error of the training risk", "units": "1", "error_of": "training_risk"}
        labels = {"risk_error": RISK_ERROR, "training_risk_error": of_training}
        wanted = {name for name, others in MADE_OF.items() if others.intersection(observables)}
        return {name: Diagnostic((), labels[name] | rule) for name in labels if name in wanted}

    def diagnosed(self) -> Mapping[str, Lazy]:
        """The standard errors of the risks now, each computed when it is read: they cost a quadrature."""
        return {"risk_error": self.risk_errors, "training_risk_error": self._training_errors}

    def risk_errors(self) -> Array:
        """The error (n,) of the present risk: the standard error, that of quadrature, and rounding.

        The bounds have the last two alone: a risk below its standard error is a result.
        """
        return self._total_risk_errors(np.zeros(len(self.replicas))) + _standard_error(self._risks_now())

    def _training_errors(self) -> Array:
        """The standard error (n,) of the present training risk; from now on `bounds` has the bounds of its tails."""
        self._training_bounds = _bounds_of_tails(self._now("training_tails"))
        return _standard_error(self._now("training_risk"))

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the risk, of the tails of the steps so far, and of the training risk where it is recorded."""
        return *super().bounds(), *_bounds_of_tails(self._now("tails")), *self._training_bounds

    def _risks_now(self) -> Array:
        """The population risks of all batches after the present steps (n, batches)."""
        parts = zip(*(self._now(name) for name in ("Q", "M", "a")), strict=True)
        return np.array([self._risks_of(i, Q, M, a) for i, (Q, M, a) in enumerate(parts)])

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The work of all samples of all steps."""
        steps = time / problem.step_time()
        return DmftOptions().paths * path_work(problem.p, problem.k, steps, steps)

    @classmethod
    def most_steps(cls, problem: Problem, options: NumericalOptions) -> float:
        """The number of steps for which the samples of a batch fit into memory and outnumber the directions.

        Each step adds p directions, with a number for each sample, twice.
        """
        assert isinstance(options, DmftOptions)
        batch = options.paths // BATCHES
        directions = min(batch // SAMPLES_A_DIRECTION, MOST_BYTES // (16 * batch))
        return max(0, directions - problem.p - problem.k) // problem.p


def _bounds_of_tails(tails: Array) -> tuple[Bound, Bound]:
    """The bounds of the largest tail of m quantities: of its index, a mean over batches, and of one sample's share.

    tails (n, batches, m, 2) : index and share (`effective_process.tails`).
    """
    index, share = tails[..., 0].mean(axis=1).max(axis=1), tails[..., 1].max(axis=(1, 2))
    largest = np.full((2, len(tails)), [[LARGEST_TAIL_INDEX], [LARGEST_SHARE]])
    return Bound("tail_index", index, largest[0]), Bound("largest_share", share, largest[1])


def _standard_error(values: Array) -> Array:
    """The standard error (n, ...) of the means of values (n, batches, ...) over the batches."""
    return np.asarray(values.std(axis=1, ddof=1) / np.sqrt(BATCHES))


DYNAMICS.register("dmft", Dmft)
