"""Synthetic labelled planes whose boundaries are known, run row by row as the rounds of a sweep ask for them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import Analysis
from sweeplib.analysis.answers import Answer
from sweeplib.analysis.kit.options import Confidence
from sweeplib.engine.design.questions import Precision, Question, Row
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.records.rounds import Rounds
from tests.plugged import nothing_left
from tests.scans import answers_of

NAME = "side"
"""The analysis that says on which side of 0 the mean of a run's last risk is, in the mean over d."""


def side(ds: xr.Dataset, *, confidence: Confidence = 0.95) -> xr.Dataset:
    """Return on which side of 0 the mean risk of each point is."""
    risk = ds["risk"].isel(dynamics=0)
    means = (risk.mean("d") if "d" in risk.dims else risk).drop_vars("dynamics")
    seeds = means.count("seed")
    half = xr.apply_ufunc(stdtrit, seeds - 1.0, 0.5 + 0.5 * confidence) * means.std("seed", ddof=1) / seeds**0.5
    codes = xr.where(means.mean("seed") < -half, 1, xr.where(means.mean("seed") > half, 2, 0)).astype(np.uint8)
    flags = {"flag_values": [0, 1, 2], "flag_meanings": "undecided below above"}
    return xr.Dataset({"label": codes.assign_attrs(flags | {"long_name": "side of 0", "units": "1"})})


@contextmanager
def labelled_sides() -> Iterator[None]:
    """Return a context in which the analysis is registered."""
    with nothing_left():
        ANALYSES.register(NAME, Analysis(NAME, side, "The side of 0", label="label"))
        yield


def asked(
    resolution: float = 0.02, *, relative: bool = False, axes: tuple[str, ...] = ("x",), **others: Any
) -> Question:
    """Return the question where the boundaries are along some axes."""
    widths = dict.fromkeys(axes, Precision(resolution, relative))
    return Question(NAME, "label", None, False, resolution=widths, **others)


class LabelledPlane:
    """A sweep over x, y and d: risks are signal(x, y) + noise.

    There are no runs at d > `largest`, and none where `runs_at` (x, y) is false.
    """

    def __init__(
        self, signal: Callable[[float, float], float], question: Question, *, xs: Any, ys: Any = (0.0,),
        ds: Any = (10,), seeds: int = 32, noise: Callable[..., np.ndarray] | None = None, status: int = 1,
        largest: float = np.inf, seed: int = 0, runs_at: Callable[[float, float], bool] = lambda x, y: True,
    ) -> None:  # fmt: skip
        self.signal, self.question, self.seed = signal, question, seed
        self.status, self.largest, self.runs_at = status, largest, runs_at
        self.noise = noise or (lambda rng, count: rng.standard_normal(count))
        self.rounds = Rounds({})
        self.rows = {(x, y, d): seeds for x in xs for y in ys for d in ds}
        self.first = dict.fromkeys(self.rows, 0)

    def dataset(self) -> xr.Dataset:
        """Return the dataset of all rows; a run depends on its row and its seed alone."""
        axes = [sorted({row[at] for row in self.rows}) for at in range(3)]
        shape = (1, *map(len, axes), max(self.rows.values()))
        risk, status = np.full(shape, np.nan), np.zeros(shape, np.uint8)
        rounds = np.full(shape[1:-1], -1)
        for row, count in self.rows.items():
            place = tuple(axis.index(value) for axis, value in zip(axes, row, strict=True))
            rounds[place] = self.first[row]
            if row[2] <= self.largest and self.runs_at(*row[:2]):
                stream = np.random.default_rng([self.seed, *np.array(row, float).view(np.int64).view(np.uint64)])
                risk[(0, *place)][:count] = self.signal(row[0], row[1]) + self.noise(stream, count)
                status[(0, *place)][:count] = self.status
        dims = ("dynamics", "x", "y", "d", "seed")
        coords = {"dynamics": ["sgd_chain"], **dict(zip(("x", "y", "d"), axes, strict=True)), "seed": range(shape[-1])}
        found = xr.Dataset(
            {"risk": (dims, np.where(status == 1, risk, np.nan)), "status": (dims, status, STATUS_LABELS)}, coords
        )
        return found.assign_coords(round=(dims[1:-1], rounds))

    def answered(self) -> list[Answer]:
        """Run rounds to the end; return the answers."""
        return answers_of(self)

    def run(self, row: Row, number: int) -> None:
        """Run a row that round `number` asks for."""
        place = tuple(row.at[name] for name in ("x", "y", "d"))
        assert row.seeds > self.rows.get(place, 0)
        self.rows[place] = row.seeds
        self.first.setdefault(place, number)


def intervals(answers: list[Answer], **at: Any) -> Mapping[str, tuple[float, float]]:
    """Return the intervals of the boundaries that are given, by what they are between."""
    here = [answer for answer in answers if at.items() <= answer.at.items()]
    return {answer.at["between"]: (answer.low, answer.high) for answer in here if answer.state == "given"}
