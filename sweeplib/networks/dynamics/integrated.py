"""What deterministic dynamics that are integrated with error control have in common.

A passage is the time at which the exit rule, such as the risk, first falls to its target of a threshold. Times are ODE
times.
"""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import Bound
from sweeplib.networks.dynamics.dynamics import Dynamics, NumericalOptions
from sweeplib.networks.dynamics.replicas import Replicas

STEPS_OF_A_SCHEDULE, SHORTEST = 200, 1e-12
"""The least number of steps with a schedule, which could be non-zero within one long step alone; and the least ODE time
to which that limits a step."""


UNDECIDED = 0.25
"""A passage says nothing if the error of the level is more than this part of its fall from the start to the target."""


def passage_errors(level_errors: Array, falls: Array, rates: Array) -> Array:
    """The errors of the times of passages: of the level over its rate of change; inf where a passage says nothing.

    level_errors, falls, rates : of each passage, in arrays of one shape, the error of the level, its fall from the
        start to the target, and its derivative by time, NaN if the passage was not noted.
    """
    # a level that stands still has the rate 0, and the error inf
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(level_errors > UNDECIDED * falls, np.inf, level_errors / np.abs(rates))
        return np.where(np.isnan(rates), np.inf, errors)


class IntegrationOptions(NumericalOptions):
    """Options of the integration of an ODE.

    rtol : relative tolerance; by default 1e-10, or the error of the drifts at the start if that is larger.
    atol : absolute tolerance.
    max_steps : number of steps after which a run has failed.
    """

    rtol: float | None = Field(default=None, ge=1e-13, le=1e-2)
    atol: float = Field(default=1e-12, ge=1e-300, le=1e-2)
    max_steps: int = Field(default=1_000_000, ge=1, lt=2**63)


class IntegratedDynamics(Dynamics):
    """Solutions of ODEs, one a replica; exit steps are real numbers.

    Subclasses define `passages` and `end_time`, and fill `passage_errors` (n, thresholds), of which NaN are not known.
    """

    stochastic = False
    states_exit_errors = True

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self.passage_errors = np.full((len(replicas), len(replicas.thresholds)), np.nan)

    @property
    @abstractmethod
    def passages(self) -> Array:
        """ODE times at which the targets were first reached (n, thresholds), inf where they were not."""

    @property
    @abstractmethod
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""

    @property
    def longest_step(self) -> Array | None:
        """The longest ODE time (n,) that a step of the integrator may take; None for any.

        It is limited where something depends on the time, such as a schedule, all of which a step could leave out.
        """
        if not self.replicas.scheduled:
            return None
        return np.maximum(self.replicas.times[:, -1] / STEPS_OF_A_SCHEDULE, SHORTEST)

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds), NaN where there was none."""
        return np.where(self.passages <= self.end_time[:, None], self.passages, np.nan)

    @property
    def exit_steps(self) -> Array:
        """The exits (n, thresholds) in SGD steps, t p d/γ, not rounded; NaN where there was none."""
        return self.exit_time / self.replicas.step_time[:, None]

    @property
    def exit_time_error(self) -> Array:
        """The errors (n, thresholds) of the exit times, NaN where there is none.

        They are inf where the level is not known well enough to tell them.
        """
        return np.where(np.isnan(self.exit_time), np.nan, self.passage_errors)

    @property
    def exit_steps_error(self) -> Array:
        """The errors (n, thresholds) of the exit steps."""
        return self.exit_time_error / self.replicas.step_time[:, None]

    def exit_bounds(self) -> Sequence[Bound]:
        """The bound that no error of an exit time is above the time itself; of each replica its worst exit."""
        if not self.replicas.thresholds.size:
            return ()
        # where there is no exit the error is −∞ and the time ∞: no bound is broken
        times = np.where(np.isnan(self.exit_time), np.inf, self.exit_time)
        errors = np.where(np.isinf(times), -np.inf, self.exit_time_error)
        worst = (np.arange(len(times)), (errors - times).argmax(axis=1))
        return (Bound("exit_time_error", errors[worst], times[worst]),)

    @property
    def end_steps(self) -> Array:
        """The last time simulated (n,) in SGD steps, t p d/γ, not rounded."""
        return self.end_time / self.replicas.step_time

    def stop_those_behind(self, behind: NDArray[np.bool_]) -> None:
        """Time out running replicas `behind` (n,), but for failures and those at a last exit; none of all runs on."""
        self.timed_out |= self.running & behind & ~self.diverged & ~self.stopped_at_exit()
        self.running &= ~behind & ~self.diverged

    def stopped_at_exit(self) -> NDArray[np.bool_]:
        """Which replicas (n,) have stopped at their last exit."""
        if not self.replicas.stop_at_exit:
            return np.zeros(len(self.replicas), dtype=bool)
        return np.asarray(np.isfinite(self.exit_time).all(axis=1))
