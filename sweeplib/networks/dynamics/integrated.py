"""What deterministic dynamics that are integrated with error control have in common."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import Bound
from sweeplib.networks.dynamics.dynamics import Dynamics, NumericalOptions

STEPS_OF_A_SCHEDULE, SHORTEST = 200, 1e-12
"""The least number of steps with a schedule, which could be non-zero within one long step alone; the least such step.
"""


UNDECIDED = 0.25
"""The error of a level, over its fall from the start, above which its passage says nothing."""


def passage_errors(of_level: Array, fall: Array, rates: Array) -> Array:
    """The errors of the times of passages.

    of_level, fall, rates : of each passage, the error of the level, its fall from the start, and its rate of change.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(of_level > UNDECIDED * fall, np.inf, of_level / np.abs(rates))
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
    """Solutions of ODEs, one a replica; exit steps are real numbers. Subclasses define `passages` and `end_time`."""

    stochastic = False
    states_exit_errors = True

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
        """The longest step (n,) that is allowed, or None."""
        if not self.replicas.scheduled:
            return None
        return np.maximum(self.replicas.times[:, -1] / STEPS_OF_A_SCHEDULE, SHORTEST)

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds), NaN where there was none."""
        return np.where(self.passages <= self.end_time[:, None], self.passages, np.nan)

    @property
    def exit_steps(self) -> Array:
        """The exits in SGD steps, t p d/γ, not rounded."""
        return self.exit_time / self.replicas.step_time[:, None]

    @property
    @abstractmethod
    def exit_time_error(self) -> Array:
        """The errors (n, thresholds) of the exit times, inf where the level is not known well enough to tell."""

    @property
    def exit_steps_error(self) -> Array:
        """The errors (n, thresholds) of the exit steps."""
        return self.exit_time_error / self.replicas.step_time[:, None]

    def exit_bounds(self) -> Sequence[Bound]:
        """An exit has an error below its time."""
        if not self.replicas.thresholds.size:
            return ()
        # where there is no exit the error is −∞ and the time ∞: no bound is broken
        times = np.where(np.isnan(self.exit_time), np.inf, self.exit_time)
        errors = np.where(np.isinf(times), -np.inf, self.exit_time_error)
        worst = (np.arange(len(times)), (errors - times).argmax(axis=1))
        return (Bound("exit_time_error", errors[worst], times[worst]),)

    @property
    def end_steps(self) -> Array:
        """The last time in SGD steps, t p d/γ, not rounded."""
        return self.end_time / self.replicas.step_time

    def stopped_at_exit(self) -> NDArray[np.bool_]:
        """Which replicas (n,) have stopped at their last exit."""
        if not self.replicas.stop_at_exit:
            return np.zeros(len(self.replicas), dtype=bool)
        return np.asarray(np.isfinite(self.exit_time).all(axis=1))
