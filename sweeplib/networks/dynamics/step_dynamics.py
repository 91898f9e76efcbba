"""Base of the dynamics that take steps: step counts, exits at the resolution of a step, stopping.

A step of the dynamics is worth `stride` steps of SGD, perhaps many (the SDE) or the `repeats` that use one batch. A
recording time inside of a step is reached by a shortened step, which the whole step then replaces.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import ONE_PASS, NumericalOptions
from sweeplib.networks.dynamics.overlap_dynamics import OverlapDynamics
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.functions import NO_DRIFTS, Functions, functions
from sweeplib.networks.problem import Problem


class StepDynamics(OverlapDynamics):
    """State of dynamics that take steps.

    stride : number of SGD steps per step, those that use a batch, unless the dynamics has steps of its own.
    step (n,) : number of the next step: whole steps taken so far.
    until, remainder (n, n_times) : whole steps before the SGD step nearest to a recording time, and SGD steps between.
    share (n,) : SGD steps between `step` and the state that is shown, to which a shortened next step led.
    exits (n, thresholds) : number of steps taken at the exit, −1 before.
    failed (n,) : number of steps taken at a divergence, −1 without one.
    targets (n, thresholds) : values of the risk, or of another exit rule, at which thresholds are reached.
    """

    reads = ONE_PASS

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self.stride = self.step_length(replicas, options)
        self.until, self.remainder = _landings(replicas.times / replicas.step_time[:, None], self.stride)
        count = len(replicas)
        self.step, self.share = np.zeros(count, dtype=np.int64), np.zeros(count)
        self.failed = np.full(count, -1, dtype=np.int64)
        self.targets = replicas.targets
        # −1 for none: 0 is the exit of a run that starts below its target
        self.exits = np.where(replicas.reached(self.targets), 0, -1)

    @classmethod
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError too for a decay by which a step takes all of a layer away, or changes its sign.

        That is at the constant rate; a schedule may make steps longer.
        """
        length = cls.step_length(problem, options) / problem.repeats
        # a dynamics with shorter steps than SGD has the limit of SGD
        T, rate = problem.step_time() * max(1.0, length), problem.second_layer_rate
        for key, of_layer, speed in (("weight_decay", "the weights", 1.0), ("second_layer_decay", "a", rate)):
            decay = getattr(problem, key)
            if speed * decay * T >= 1.0:
                of_step = f"a step of the time {T:g} multiplies {of_layer} by 1 - {speed * T:g} {key}"
                expected = f"less than {1.0 / (speed * T):g}: {of_step}"
                raise InputError(f"a step leaves nothing of {of_layer}", key=key, value=decay, expected=expected)
        super().check(problem, options)

    @staticmethod
    def step_length(problem: Problem | Replicas, options: NumericalOptions) -> float:
        """The number of SGD steps per step of the dynamics: those that use one batch."""
        return float(problem.repeats)

    def stop(self) -> None:
        """Stop the replicas that diverged, and those that made their last exit if they may stop there."""
        self.diverged = self.failed >= 0
        self.running &= ~self.diverged
        if self.replicas.stop_at_exit:
            self.running &= ~(self.exits >= 0).all(axis=1)

    def go_on(self, earlier: Mapping[str, Array]) -> None:
        """Go on from runs that ended earlier: set the numbers of steps, the exits and the error of the drifts.

        earlier : by name, the records of these runs: `end_steps` (n,), `exit_steps` (n, thresholds), NaN for none.
        """
        self.step = _landings(earlier["end_steps"], self.stride)[0]
        self._drift_error = earlier.get("drift_error", self._drift_error)
        if self.exits.size:  # without thresholds there is no record of exits
            steps = earlier["exit_steps"] / self.stride
            self.exits = np.rint(np.where(np.isnan(steps), -1.0, steps)).astype(np.int64)

    def behind(self, to: int) -> NDArray[np.intp]:
        """Return the running replicas that have whole steps to take to recording time number `to`."""
        return np.flatnonzero(self.running & (self.step < self.until[:, to]))

    def give_up(self) -> None:
        """Mark as timed out the running replicas that have not taken their last step."""
        self.timed_out |= self.running & (self.step < self.until[:, -1])
        self.running &= ~self.timed_out

    def between(self, to: int) -> NDArray[np.intp]:
        """Return the running replicas whose recording time number `to` lies between the present step and the next."""
        return np.flatnonzero(self.running & (self.remainder[:, to] > 0.0))

    def reached(self, to: int) -> NDArray[np.bool_]:
        """Which replicas (n,) took all steps to recording time number `to`."""
        return self.stride * self._own_steps() + self.share >= self.stride * self.until[:, to] + self.remainder[:, to]

    @property
    def exit_steps(self) -> Array:
        """Steps after which each threshold was first reached (n, thresholds), NaN where it was not."""
        return np.where(self.exits >= 0, self.stride * self.exits, np.nan)

    @property
    def end_steps(self) -> Array:
        """Steps taken by each replica (n,): up to its last exit if it stopped there, or its divergence."""
        return np.asarray(self.stride * self._own_steps() + self.share, dtype=np.float64)

    def _own_steps(self) -> NDArray[np.int64]:
        """Return the number of whole steps of each replica (n,): to its divergence, its last exit, or up to now."""
        steps = np.where(self.diverged, self.failed, self.step)
        if self.replicas.stop_at_exit:
            out = (self.exits >= 0).all(axis=1)
            # a replica goes on to the end of its round of steps, beyond its last exit
            steps = np.where(out & ~self.diverged, self.exits.max(axis=1, initial=0), steps)
        return steps


def _landings(landings: Array, stride: float) -> tuple[NDArray[np.int64], Array]:
    """Whole steps, of `stride` SGD steps each, before the SGD step nearest to each landing, and SGD steps left to it.

    landings : times in SGD steps, of any shape. A step shorter than one of SGD has none left: the nearest is taken.
    """
    if stride <= 1.0:
        return np.rint(landings / stride).astype(np.int64), np.zeros(landings.shape)
    whole = np.floor(np.rint(landings) / stride)
    return whole.astype(np.int64), np.rint(landings) - stride * whole


def functions_of(replicas: Replicas, drifts: tuple[Callable[..., None], ...] = NO_DRIFTS) -> Functions:
    """Return the addresses of the functions that kernels call: of activations, target, loss, rule of steps and exits.

    drifts : rules for the drifts of many systems and of one, where the kernel uses them.
    """
    forms = replicas.activation, replicas.target, replicas.teacher_activation
    return functions(*forms, replicas.criterion, replicas.rule, drifts, replicas.exit_rule)
