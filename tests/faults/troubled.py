"""A plugin for tests: a dynamics of cheap numbers, in which γ selects the trouble that a case makes."""

import ctypes
import os
import signal
import time

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import DYNAMICS, ONE_PASS, NumericalOptions
from sweeplib.networks.dynamics.overlap_dynamics import OverlapDynamics
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import Problem

RAISES, KILLS, HANGS, DIVERGES, WEDGES, HUNGERS, LEAVES, SHOUTS, MISSHAPES = (101.0 + trouble for trouble in range(9))
TROUBLED_SEED = 3


class Troubled(OverlapDynamics):
    """Replicas whose overlaps and exits are random numbers of their own streams."""

    name = "troubled"
    label = "Troubled"
    reads = ONE_PASS
    replicas_at_once = 64
    seconds = float(os.environ.get("TROUBLED_SECONDS", "0.015"))

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        streams = zip(replicas.keys.tolist(), replicas.seeds.tolist(), strict=True)
        self._numbers = [np.random.default_rng(stream) for stream in streams]
        self._exits = np.array([rng.integers(1, 1000, len(replicas.thresholds)) for rng in self._numbers], dtype=float)
        self._end = np.zeros(len(replicas))

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Advance to a recording time, or make trouble."""
        if self._in_trouble(RAISES).any():
            raise ArithmeticError("a case that raises")
        if self._in_trouble(KILLS).any():
            os.kill(os.getpid(), signal.SIGKILL)
        if self._in_trouble(WEDGES).any():
            ctypes.PyDLL(None).sleep(3600)  # keeps the interpreter lock, and does not return
        if self._in_trouble(LEAVES).any():
            raise SystemExit("a case that leaves")
        if self._in_trouble(SHOUTS).any():
            raise ArithmeticError("\ud800" + 50_000_000 * "x")
        taken = []
        while self._in_trouble(HUNGERS).any():
            taken.append(np.ones(2**25))
        if self.seconds:  # a sleep of no time hands the processor over
            time.sleep(self.seconds * len(self.replicas))
        self.diverged = self._in_trouble(DIVERGES)
        if self._in_trouble(HANGS).any():
            time.sleep(max(0.0, deadline - self.clock()))
            self.timed_out = self._in_trouble(HANGS)
        self.running = ~(self.diverged | self.timed_out)
        self._end = np.where(self.running, self.replicas.times[:, to], self._end)
        for place in np.flatnonzero(self.running):
            self.M[place] = self._numbers[place].normal(size=self.M[place].shape)

    def _in_trouble(self, kind: float) -> np.ndarray:
        return (self.replicas.gamma == kind) & (self.replicas.seeds == TROUBLED_SEED)

    @property
    def exit_steps(self) -> Array:
        """Return the steps of the exits, NaN for replicas in trouble; for one kind of trouble in a wrong shape."""
        if self._in_trouble(MISSHAPES).any():
            return np.zeros(len(self.replicas))
        return np.where(self.running[:, None], self._exits, np.nan)

    @property
    def end_steps(self) -> Array:
        """Return the last step."""
        return np.rint(self._end / self.replicas.step_time)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Return the step length of SGD."""
        return time / problem.step_time()


class Calm(Troubled):
    """The same dynamics under another name, without delay."""

    name = "calm"
    label = "Calm"
    seconds = 0.0


class Stuck(Calm):
    """The same, but groups of more than two replicas never end, and those with the troubled γ never begin."""

    name = "stuck"
    label = "Stuck"

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        if (replicas.gamma == HANGS).any():
            time.sleep(3600)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Advance to a recording time, or hang."""
        if len(self.replicas) > 2:
            time.sleep(3600)
        super().advance(to, deadline)


class Deadly(Calm):
    """The same, but at the killing γ every 25th seed kills its process."""

    name = "deadly"
    label = "Deadly"

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        if ((replicas.gamma == KILLS) & (replicas.seeds % 25 == TROUBLED_SEED)).any():
            os.kill(os.getpid(), signal.SIGKILL)


DYNAMICS.register("deadly", Deadly)
DYNAMICS.register("troubled", Troubled)
DYNAMICS.register("stuck", Stuck)
DYNAMICS.register("calm", Calm)
