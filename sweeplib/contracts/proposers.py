"""What every proposer keeps, on a synthetic scan of learning rates whose mean exit steps are known.

A proposer of another kind of sweep, which refuses the scan, is tested by a sweep of yours.

Public functions of `name`, the registered name of a proposer, that return nothing are checks: each raises BrokenError
with what is wrong, and its own name is the sentence that it checks. Rows are numbers of seeds by learning rate.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from sweeplib.analysis.answers import PROPOSERS, Answer, State
from sweeplib.config import from_mapping
from sweeplib.contracts.check import LeftOutError, remembered, require
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.errors import InputError

SCAN = {"gamma": [0.3, 0.45, 0.65, 0.9, 1.2, 1.5]}
"""The grid of the sweep."""
FIRST_SEEDS, MOST_ROUNDS, MOST_SEEDS = 16, 40, 20_000
"""The seeds of its rows, the most rounds of a proposer, and the most seeds that a row gets."""


def steps(gamma: float) -> float:
    """Return the mean exit steps of the scan: those of phase retrieval, with the optimum 1."""
    return 1000.0 / (gamma * (2.0 - gamma))


def scanned(rows: Mapping[float, int]) -> xr.Dataset:
    """Return the dataset of rows, seeds by learning rate; a run depends on its row and its seed alone."""
    gammas, most = sorted(rows), max(rows.values())
    exits, status = np.full((1, len(gammas), most, 1), np.nan), np.zeros((1, len(gammas), most), np.uint8)
    for place, gamma in enumerate(gammas):
        stream = np.random.default_rng([int(gamma * 1e9)])
        # log-normal, of mean 1: .10125 is half of the variance .45²
        exits[0, place, : rows[gamma], 0] = steps(gamma) * np.exp(0.45 * stream.standard_normal(rows[gamma]) - 0.10125)
        status[0, place, : rows[gamma]] = 1
    dims = ("dynamics", "gamma", "seed", "threshold")
    names = ("exit_steps", "end_steps", "exit_time", "end_time")
    labelled = {name: (dims, exits, {"long_name": name, "units": "1"}) for name in names}
    coords = {"dynamics": ["sgd_chain"], "gamma": gammas, "seed": np.arange(most), "threshold": [0.1]}
    fixed = {"p": 1, "k": 1, "d": 1000, "Delta": 0.0, "activation": "square", "spherical": 1}
    result = xr.Dataset({**labelled, "status": (dims[:3], status, STATUS_LABELS)}, coords)
    return result.assign_attrs(fixed | {"fixed": " ".join(fixed)})


@remembered
def design(name: str) -> Design:
    """Return a sweep with the example of a proposer; LeftOutError if it does not fit the scan."""
    problem = {"p": 1, "k": 1, "d": 1000, "Delta": 0, "activation": "square", "spherical": True}
    try:
        return from_mapping(
            {
                "name": "asked", "problem": problem, "grid": SCAN, "seeds": FIRST_SEEDS, "dynamics": ["sgd_chain"],
                "times": [0, 20], "thresholds": [0.1], "stop": "exit", "figures": [],
                "answers": {"asked": dict(PROPOSERS[name].example)},
            }
        )  # fmt: skip
    except InputError as error:
        raise LeftOutError(f"its example does not fit a scan of learning rates: {error}") from None


def _question(name: str) -> Question:
    """Return the question of the example of a proposer."""
    return design(name).questions["asked"]


def _answers(name: str, ds: xr.Dataset) -> list[Answer]:
    """Return the answers of a new proposer that is told a dataset."""
    question = _question(name)
    return PROPOSERS[name]("asked", _question(name)).tell(ds, design(name).analyses[question.of])


@remembered
def history(name: str) -> list[tuple[dict[float, int], list[Answer]]]:
    """Return the rows and the answers of each round, to the one that asks for nothing, or the last that is made."""
    rows: dict[float, int] = dict.fromkeys(SCAN["gamma"], FIRST_SEEDS)
    result = []
    for _ in range(MOST_ROUNDS):
        answers = _answers(name, scanned(rows))
        result.append((dict(rows), answers))
        before, rows = rows, _grown(rows, answers)
        if rows == before:
            break
    return result


def _grown(rows: dict[float, int], answers: list[Answer]) -> dict[float, int]:
    """Return how many seeds each row has after a round; of several requests for a row the largest counts."""
    result = dict(rows)
    for row in _requests(answers):
        gamma = row.at["gamma"]
        result[gamma] = max(result.get(gamma, 0), min(row.seeds, MOST_SEEDS))
    return result


def _requests(answers: list[Answer]) -> list[Row]:
    return [row for answer in answers for row in answer.requests]


def it_takes_its_example(name: str) -> None:
    """Check that `takes` is true of the question of `example`."""
    require(PROPOSERS[name].takes(_question(name)), "`takes` is false for its `example`")


def it_asks_for_rows_that_can_be_run(name: str) -> None:
    """Check that requests have a value of each axis, within the bounds, a whole number of seeds, and a reason."""
    bounds = _question(name).bounds.get("gamma", (min(SCAN["gamma"]), max(SCAN["gamma"])))
    for row in (row for _, answers in history(name) for row in _requests(answers)):
        require(set(row.at) == {"gamma"}, f"it asks for a row of {sorted(row.at)}; expected a value of gamma")
        inside = bounds[0] <= row.at["gamma"] <= bounds[1] or row.at["gamma"] in SCAN["gamma"]
        require(inside, f"it asks for gamma = {row.at['gamma']}, beyond the bounds {list(bounds)}")
        is_number = isinstance(row.seeds, int) and row.seeds > 0  # type: ignore[redundant-expr]
        require(is_number, f"it asks for {row.seeds!r} seeds")
        require(bool(row.reason), "it asks for a row without a reason")


def it_ends(name: str) -> None:
    """Check that after some rounds it asks for nothing, and that answers are given, or say why not."""
    rows, answers = history(name)[-1]
    require(not [row for row in _requests(answers) if row.seeds > rows.get(row.at["gamma"], 0)],
            f"it asks for more after {len(history(name))} rounds, or for more than {MOST_SEEDS} seeds")  # fmt: skip
    require(bool(answers), "it has no answer, not even one that says why not")
    for answer in answers:
        require(answer.state is State.given or bool(answer.why), f"it does not say why {answer.line()}")


def what_is_given_is_as_precise_as_was_asked(name: str) -> None:
    """Check that the half width of an answer that is given is not larger than that of the question."""
    for answer in (answer for _, answers in history(name) for answer in answers if answer.state is State.given):
        require(not answer.half_width > answer.wanted * (1 + 1e-9), f"it gives {answer.line()}")


def the_same_dataset_gives_the_same_answers(name: str) -> None:
    """Check that a new proposer, told the last dataset alone, says what the first one said after all rounds."""
    rows, answers = history(name)[-1]
    first, again = (
        [(row.record(), row.requests) for row in batch] for batch in (answers, _answers(name, scanned(rows)))
    )
    require(again == first, "it depends on what it was told before, or on chance")
