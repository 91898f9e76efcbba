"""Rounds: run the rows that there are, analyse them, let proposers ask for more, until the questions are answered.

The requests of an answer are the rows that its proposer asks for. A budget in time is one of processor seconds, at the
prices of the blocks that the sweep has computed; one of cases counts runs of all dynamics.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.analysis.answers.answer import Answer, State, summary_line
from sweeplib.analysis.answers.proposer import explained, proposer_of
from sweeplib.analysis.answers.table import row_dims, seeds_asked, values_at
from sweeplib.engine.base.budget import CASES
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.design import Design
from sweeplib.engine.design.questions import Question, Row, with_rows
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT
from sweeplib.engine.execution.clients import LastingCluster
from sweeplib.engine.execution.run import DynamicsSummary, run_sweep
from sweeplib.engine.process.terminal import clock_time
from sweeplib.engine.storage.dataset.finalise import dataset_in_memory
from sweeplib.engine.storage.records.artefacts import questions_made_from
from sweeplib.engine.storage.records.rounds import Rounds, rounds_of
from sweeplib.engine.storage.records.stage_records import next_part, tell
from sweeplib.engine.storage.store.inventory import cost_class
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import InputError

Say = Callable[[str], None]
Seeds = Callable[[Row], int]
"""The number of seeds that a row has, or has been asked for before; 0 for a new row."""
Price = Callable[[Row], float]
"""What one seed of a row costs, in cases or in seconds."""


def run_rounds(
    sweep: Design, directory: Path, *, say: Say = lambda _: None, progress: bool = True, **options: Any
) -> dict[str, DynamicsSummary]:
    """Run a sweep and its rounds; return the summaries of all of its rows.

    Each round is recorded before its rows are computed, so that the same call goes on after a crash. `say` is told of
    each round; the other options are those of `run_sweep`.
    """
    rounds, computed = rounds_of(sweep, directory), Counter[str]()
    with LastingCluster() as lasting:
        while True:
            whole = with_rows(sweep, rounds.rows)
            summaries = run_sweep(whole, directory, progress=progress, lasting=lasting, **options)
            computed.update({name: summary.computed for name, summary in summaries.items()})
            if not rounds.prices and any(math.isfinite(question.seconds) for question in sweep.questions.values()):
                rounds = replace(rounds, prices=measured_prices(whole, directory))
            ends = {"cases": {name: summary.cases for name, summary in summaries.items()}}
            now = json.loads(json.dumps(ends | questions_made_from(sweep), default=str))  # as a record is read
            # after `retry`, or an edit of an analysis, the last decision is about other numbers
            is_judged = rounds.judged == now and not any(summary.computed for summary in summaries.values())
            if (rounds.ended and is_judged) or not sweep.questions:
                return {name: DynamicsSummary(last.cases, computed[name]) for name, last in summaries.items()}
            rounds = replace(decided(whole, rounds, dataset_in_memory(whole, directory)), judged=now).write(directory)
            say(summary_line(rounds))
            next_part()
            tell(news=summary_line(rounds))


def decided(whole: Design, rounds: Rounds, ds: "xr.Dataset") -> Rounds:
    """Return the rounds with one more: the rows that the questions of a sweep need next, within their budgets.

    whole : the sweep with the rows of all rounds so far. ds : the results of all of them.
    """
    before, spent, seconds = _seeds_of_rows(ds, rounds), dict(rounds.spent), dict(rounds.seconds)
    answers: list[Answer] = []
    # questions share the room, in their order: an earlier one may leave nothing to a later one
    room = CASES - whole.size
    for name, question in whole.questions.items():
        chosen = [_with_new_rows(answer, before) for answer in _answers(whole, name, question, ds)]
        most = room if question.budget is None else min(room, question.budget - spent.get(name, 0))
        limit = (
            f"the limit of {CASES:,} cases of a sweep"
            if question.budget is None
            else f"its budget of {question.budget:,} cases"
        )
        by_cases = Budget(most, limit, lambda _: len(whole.laws), before, lambda cases: f"{cases:,.0f}")
        chosen = by_cases.affordable(chosen)
        if math.isfinite(question.seconds):
            price = price_of_rows(whole, [row for answer in chosen for row in answer.requests], rounds.prices)
            limit = f"its budget of {clock_time(question.seconds)} of a processor"
            by_time = Budget(question.seconds - seconds.get(name, 0.0), limit, price, before, clock_time)
            chosen = by_time.affordable(chosen)
            seconds[name] = seconds.get(name, 0.0) + sum(map(by_time.cost, chosen))
        extra = int(sum(map(by_cases.cost, chosen)))
        spent[name], room = spent.get(name, 0) + extra, room - extra
        answers += chosen
    rows = merged(row for answer in answers for row in answer.requests)
    # each law runs at the new rows
    if len(whole.laws) > 1:
        answers = [replace(answer, cases=len(whole.laws) * answer.cases) for answer in answers]
    return rounds.with_round(rows, [answer.record() for answer in answers], spent, seconds)


def _answers(sweep: Design, name: str, question: Question, ds: "xr.Dataset") -> list[Answer]:
    """Return the answers of a question's proposer; InputError if a plugin's fails, or asks for what cannot be run."""
    proposer = proposer_of(name, question)
    columns = {axis: dict.fromkeys(ds[axis].values.tolist()) for axis in row_dims(ds)}
    with explained(type(proposer), name):
        answers = list(proposer.tell(ds, question.options_in(sweep.analyses)))
        for row in (row for answer in answers for row in answer.requests):
            _check_row(row, name, question, columns)
    return answers


def _check_row(row: Row, name: str, question: Question, columns: Mapping[str, dict[Any, None]]) -> None:
    """Raise InputError for a row without a value of each axis, or with one that the question does not allow.

    columns : by axis, the values that are in the grid, ascending (an ordered set).
    """
    problem, key = f"its proposer asks for a row at {dict(row.at)}", f"answers.{name}"
    if set(row.at) != set(columns):
        raise InputError(problem, key=key, expected=f"a value of each of {', '.join(columns)}")
    is_number = isinstance(row.seeds, int) and row.seeds > 0  # type: ignore[redundant-expr]
    if not is_number:
        raise InputError(f"{problem} with {row.seeds!r} seeds", key=key, expected="a whole number of seeds")
    for axis, value in row.at.items():
        values = columns[axis]
        low, high = question.bounds.get(axis, (next(iter(values)), next(reversed(values))))
        may_grow = axis in question.bounds or axis in question.resolution
        if value not in values and not (may_grow and low <= value <= high):
            expected = f"{axis} from {low:g} to {high:g}" if may_grow else f"a value of {axis} in the grid"
            raise InputError(problem, key=key, expected=expected)


def _seeds_of_rows(ds: "xr.Dataset", rounds: Rounds) -> Seeds:
    """Return a function that gives the number of seeds that a row has, or has been asked for: 0 for a new one."""
    dims = row_dims(ds)
    counts, columns = values_at(seeds_asked(ds).max("dynamics"), dims), [ds[dim].values.tolist() for dim in dims]
    seeds = {
        tuple(column[at] for column, at in zip(columns, index, strict=True)): count
        for index, count in zip(np.argwhere(counts > 0).tolist(), counts[counts > 0].tolist(), strict=True)
    }
    for row in (row for rows in rounds.rows for row in rows):
        place = tuple(row.at[dim] for dim in dims)
        seeds[place] = max(row.seeds, seeds.get(place, 0))
    return lambda row: seeds.get(tuple(row.at[dim] for dim in dims), 0)


def _with_new_rows(answer: Answer, before: Seeds) -> Answer:
    """Return an answer with those of its requests that ask for more seeds than rows have.

    If it is open and none do, nothing more may be run for it: its state is `none`.
    """
    new = tuple(row for row in answer.requests if row.seeds > before(row))
    if len(new) == len(answer.requests) and (new or answer.state is not State.open):
        return answer
    if answer.state is State.open and not new:
        return replace(answer, state=State.none, why=f"{answer.why}; no more seeds of it may be run", requests=())
    return replace(answer, requests=new)


@dataclass(frozen=True)
class Budget:
    """What may be spent on the answers to a question: cases, or seconds.

    room : what is left. limit : the whole budget in words. price : the cost of a seed of a row. before : the seeds that
    a row has already. in_words : puts a number of cases or seconds into words.
    """

    room: float
    limit: str
    price: Price
    before: Seeds
    in_words: Callable[[float], str]

    def cost(self, answer: Answer) -> float:
        """Return what the requests of an answer cost."""
        return sum(self.price(row) * (row.seeds - self.before(row)) for row in answer.requests)

    def need(self, answer: Answer) -> float:
        """Return an estimate of what an answer costs to its end, at the price of its requests."""
        new = [(row, row.seeds - self.before(row)) for row in answer.requests]
        now, seeds = sum(self.price(row) * count for row, count in new), sum(count for _, count in new)
        return max(now, answer.cases * now / seeds if seeds and math.isfinite(answer.cases) else 0.0)

    def affordable(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return the answers with the requests for which there is room, those that need least first.

        Room is kept for all that an answer needs, so that as many as possible are given.
        """
        chosen, room = list(answers), self.room
        needs = list(map(self.need, chosen))
        for place in sorted(range(len(chosen)), key=needs.__getitem__):
            if chosen[place].requests and needs[place] <= room:
                room -= needs[place]
            elif chosen[place].requests:
                free, now = self.in_words(max(room, 0)), self.in_words(self.cost(chosen[place]))
                why = f"{self.limit} does not suffice ({free} left, the next round takes {now})"
                chosen[place] = replace(chosen[place], why=f"{chosen[place].why}, and {why}", requests=())
        return chosen


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each point of the `rows`, with the most seeds that any asks for and all reasons."""
    by_place: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        place = tuple(sorted(row.at.items()))
        if (other := by_place.setdefault(place, row)) is not row:
            reason = other.reason if row.reason in other.reason.split("; ") else f"{other.reason}; {row.reason}"
            by_place[place] = Row(row.at, max(row.seeds, other.seeds), reason)
    return list(by_place.values())


def measured_prices(sweep: Design, directory: Path) -> dict[str, float]:
    """Return the seconds of a unit of work of each dynamics, as its tasks took them; the nominal ones without tasks."""
    return {name: RunStore(directory, name).seconds_a_unit() or SECONDS_A_WORK_UNIT for name in sweep.runs}


def price_of_rows(whole: Design, new: Iterable[Row], prices: Mapping[str, float]) -> Price:
    """Return a function that gives the seconds that a seed of a row takes, in all dynamics that run there.

    new : the rows of which it will be asked. prices : seconds of a unit of work, by dynamics.
    """
    sweep = with_rows(whole, [tuple(new)])
    seconds: Counter[int] = Counter()
    for dynamics, price in prices.items():
        points = sweep.points(dynamics)
        # prices are per unit of the work of segments, which is an order of magnitude, a power of 4
        costs = price * 4.0 ** cost_class(points.cases.works())
        # flat places of cases, in which seeds are last, as those of points
        seconds.update(dict(zip((points.flat // len(sweep.seeds)).tolist(), costs.tolist(), strict=True)))

    def seconds_of(row: Row) -> float:
        """Return the seconds of a seed of a row."""
        index = [axis.place_of[row.at[axis.name]] for axis in sweep.grid.axes]
        return seconds[int(np.ravel_multi_index(index, sweep.grid.shape)) if index else 0]

    return seconds_of
