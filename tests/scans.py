"""Synthetic sweeps whose truth is known, run row by row as the rounds of a sweep with questions ask for them."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import xarray as xr

from sweeplib.analysis.answers import Answer
from sweeplib.analysis.answers.rounds import decided
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.records.rounds import Rounds

Law = Callable[[float], float]
MOST_ROUNDS = 60


def exits_like(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return factors with mean 1 and the scatter of exit times."""
    return np.exp(0.45 * rng.standard_normal(count) - 0.45**2 / 2)


def exponential(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.exponential(size=count)


def lognormal(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.exp(rng.standard_normal(count) - 0.5)


class Asked(Protocol):
    """What rounds are run on: a dataset that has the rows of all rounds."""

    question: Question
    rounds: Rounds

    def dataset(self) -> xr.Dataset:
        """Return the dataset of all rows that were run."""

    def run(self, row: Row, number: int) -> None:
        """Run a row that round `number` asks for."""


def answers_of(asked: Asked) -> list[Answer]:
    """Run rounds to the end; return the answers."""
    given = {"questions": {"asked": asked.question}, "analyses": getattr(asked, "analyses", {})}
    sweep: Any = SimpleNamespace(**given, laws={"sgd_chain": 0}, size=0)
    while not asked.rounds.ended:
        assert len(asked.rounds.rows) < MOST_ROUNDS
        asked.rounds = decided(sweep, asked.rounds, asked.dataset())
        for row in asked.rounds.rows[-1] if not asked.rounds.ended else ():
            asked.run(row, len(asked.rounds.rows))
    return [Answer.of(record) for record in asked.rounds.answers]


class SyntheticSweep:
    """A sweep along gamma: `rows` are the seeds of each value; runs end at the horizon.

    Mean steps are law(γ); a part never(γ) of the runs never exits.
    """

    def __init__(
        self,
        law: Law,
        rows: Mapping[float, int],
        question: Question,
        *,
        noise=exits_like,
        horizon=np.inf,
        seed=0,
        never: Law = lambda gamma: 0.0,
        analyses: Mapping[str, Mapping[str, Any]] | None = None,
    ):
        self.law, self.noise, self.horizon, self.seed, self.never = law, noise, horizon, seed, never
        self.question, self.rows, self.analyses = question, dict(rows), analyses or {}
        self.rounds, self.runs = Rounds({}), dict[float, np.ndarray]()

    def dataset(self) -> xr.Dataset:
        """Return the dataset of all rows; a run depends on its row and its seed alone."""
        gammas, most = sorted(self.rows), max(self.rows.values())
        steps = np.full((1, len(gammas), most, 1), np.nan)
        status = np.zeros((1, len(gammas), most), np.uint8)
        for place, gamma in enumerate(gammas):
            count = self.rows[gamma]
            stream = np.random.default_rng([self.seed, int(gamma * 1e9)])
            known = self.runs.get(gamma, np.empty(0))
            if len(known) < count:
                known = self.law(gamma) * self.noise(stream, 2 * count)
                known[stream.random(2 * count) < self.never(gamma)] = np.inf
                self.runs[gamma] = known
            steps[0, place, :count, 0], status[0, place, :count] = known[:count], 1
        dims = ("dynamics", "gamma", "seed", "threshold")
        exit_, end = np.where(steps <= self.horizon, steps, np.nan), np.minimum(steps, self.horizon)
        found = {"exit_steps": exit_, "end_steps": end, "exit_time": exit_, "end_time": end}
        labelled = {name: (dims, values, {"long_name": name, "units": "1"}) for name, values in found.items()}
        coords = {"dynamics": ["sgd_chain"], "gamma": gammas, "seed": np.arange(most), "threshold": [0.1]}
        fixed = {"p": 1, "k": 1, "d": 1000, "Delta": 0.0, "activation": "erf", "spherical": 1}
        return xr.Dataset({**labelled, "status": (dims[:3], status, STATUS_LABELS)}, coords=coords).assign_attrs(
            fixed | {"fixed": " ".join(fixed)}
        )

    def answered(self) -> list[Answer]:
        """Run rounds to the end; return the answers."""
        return answers_of(self)

    def run(self, row: Row, number: int) -> None:
        """Run a row that round `number` asks for."""
        assert row.seeds > self.rows.get(row.at["gamma"], 0)
        self.rows[row.at["gamma"]] = row.seeds
