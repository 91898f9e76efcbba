"""Base of the dynamics with replicas in lanes: blocks of states and constants, and rounds of steps.

Blocks are arrays (rows, n) with a column for each replica, as kernels read them: `kernels.lanes` takes groups of
columns into vector lanes. A round is a call of the kernel, which takes a number of steps of each replica.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import NumericalOptions
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.kernels.functions import Functions
from sweeplib.networks.kernels.lanes import LANES, Progress
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.problem import Problem

STEPS_A_ROUND = 512
"""Number of steps after which stopped replicas leave their lanes and the clock is read."""


class LaneDynamics(StepDynamics):
    """Replicas whose states are the columns of `state` (rows, n), advanced by the kernel `round`.

    Subclasses set `round`, `settings` and `called`, the arguments of the kernel that are the same for all replicas, and
    call `begin` last in `__init__`. The last p rows of a state are a, unless steps are of tasks drawn at random.
    """

    replicas_at_once = 1024
    lanes = LANES
    round: Callable[..., None]
    settings: Any
    state: Array
    called: Functions

    def begin(self, state: Array, teacher: Array) -> None:
        """Start from a block `state` (rows, n), with the rows (·, n) of the `teacher` among the constants."""
        replicas, self.teacher = self.replicas, teacher
        self._rates = rates(replicas.schedule, self.stride, replicas.noise_schedule)
        self.state = np.ascontiguousarray(state)
        # rows in the order of `lanes.Constants`: a* (k), the `Numbers`, and those of the teacher
        self._constants = np.concatenate([replicas.a_star.T, replicas.numbers, teacher])

    @property
    def has_weight_noise(self) -> bool:
        """Whether steps add noise to the weights; replicas agree in this."""
        return bool(self.replicas.numbers.temperature[0] > 0.0)

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks: put its a* into the constants, and its a into the state."""
        super().begin_phase(phase)
        self._constants[: self.replicas.k] = self.replicas.a_star.T
        self.state[-self.replicas.p :] = self.a.T

    def end_state(self) -> Array:
        """The states (n, rows): the columns of `state`."""
        return self.state.T

    def go_on(self, earlier: Mapping[str, Array]) -> None:
        """Go on from runs that ended earlier, whose records these are: their `end_state` (n, rows) is the state."""
        super().go_on(earlier)
        self.state = np.ascontiguousarray(earlier["end_state"].T)

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Return True: exits may be on any level, as the kernel calls the exit rule in place of the risk."""
        return True

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The rows of `state`: p (p + k + 1) of A, B and a; 0, so that no run goes on, with blocks or several tasks."""
        alone = not (problem.has_spectrum or problem.in_turn)
        return problem.p * (problem.p + problem.k + 1) if alone else 0

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take steps, in rounds, until every running replica is at recording time number `to`; then observe the state.

        The kernel changes state, step counts, exits and failures in place.
        """
        self.share[:] = 0.0
        until = np.ascontiguousarray(self.until[:, to])
        progress = Progress(self.step, until, self.targets, self.exits, self.failed, *self._streams)
        while (order := self.behind(to)).size:
            shared = self.settings, self.called, self._rates
            self.round(order, self.steps_a_round, *shared, self.state, self._constants, progress)
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        self.observe(self.state if self.stride <= 1.0 else self._landed(to))

    def _landed(self, to: int) -> Array:
        """The states (rows, n) at recording time number `to`: copies, of which some are moved by a shortened step.

        The shortened step has the random numbers of the step that is later taken as a whole: what is recorded changes
        no path, unless the shortened step diverges, which ends the run.
        """
        between, state, step = self.between(to), self.state.copy(), self.step.copy()
        self.share[between] = self.remainder[between, to]
        no_exits = np.empty((len(step), 0)), np.empty((len(step), 0), np.int64)
        progress = Progress(step, step + 1, *no_exits, self.failed, *self._streams)
        # the length of a step is a setting, which all lanes of a call share
        for share in np.unique(self.share[between]):
            shared = self.settings_of(float(share)), self.called, self._rates
            self.round(between[self.share[between] == share], 1, *shared, state, self._constants, progress)
        self.stop()
        self.share[~self.running] = 0.0
        return state

    @property
    def _streams(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The keys and seeds (n,) that name the streams of random numbers."""
        return self.replicas.keys, self.replicas.seeds

    def settings_of(self, share: float) -> Any:
        """The settings of a step shortened to `share` SGD steps; for dynamics with steps longer than one of SGD."""
        raise NotImplementedError

    @property
    def steps_a_round(self) -> int:
        """The largest number of steps of a round."""
        return STEPS_A_ROUND

    @abstractmethod
    def observe(self, state: Array) -> None:
        """Set Q (n, p, p), M (n, p, k) and a (n, p) to those of the states (rows, n) at a recording time."""


def rows(array: Array) -> Array:
    """An array (n, ...) as rows (·, n) of a block, its other axes one after the other."""
    return array.transpose(*range(1, array.ndim), 0).reshape(-1, len(array))


def unrolled(block: Array, *shape: int) -> Array:
    """Rows (·, n) of a block as an array (n, *shape): the inverse of `rows`."""
    return np.ascontiguousarray(block.reshape(*shape, block.shape[-1]).transpose(-1, *range(len(shape))))
