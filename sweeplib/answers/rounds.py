"""Rounds: run the rows that there are, analyse them, let proposers ask for more, until the questions are answered."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.answers.answer import Answer, State
from sweeplib.answers.proposer import proposer_of
from sweeplib.answers.shown import said
from sweeplib.answers.table import row_dims, seeds_asked, values_at
from sweeplib.budget import CASES
from sweeplib.design.questions import Question, Row, with_rows
from sweeplib.execution.run import Summary, run_sweep
from sweeplib.storage.dataset.finalise import dataset_in_memory
from sweeplib.storage.records.jobs import tell
from sweeplib.storage.records.rounds import Rounds, rounds_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.design.sweep import Sweep

Say = Callable[[str], None]
Seeds = Callable[[Row], int]


def run_rounds(
    sweep: "Sweep", directory: Path, *, say: Say = lambda _: None, progress: bool = True, **options: Any
) -> dict[str, Summary]:
    """Run a sweep and its rounds; return the summaries of all of its rows.

    Each round is recorded before its rows are computed, so that the same call goes on after a crash. `say` is told of
    each round; the other options are those of `run_sweep`.
    """
    rounds, computed = rounds_of(sweep, directory), Counter[str]()
    while True:
        whole = with_rows(sweep, rounds.rows)
        summaries = run_sweep(whole, directory, progress=progress, **options)
        computed.update({name: summary.computed for name, summary in summaries.items()})
        if rounds.ended or not sweep.questions:
            return {name: Summary(last.cases, computed[name]) for name, last in summaries.items()}
        rounds = decided(whole, rounds, dataset_in_memory(whole, directory)).write(directory)
        say(said(rounds))
        tell(news=said(rounds))


def decided(whole: "Sweep", rounds: Rounds, ds: "xr.Dataset") -> Rounds:
    """Return the rounds with the rows that the questions of a sweep need after those of `ds`, all of which are done."""
    before, spent = _seeds_of_rows(ds, rounds), dict(rounds.spent)
    answers: list[Answer] = []
    room = CASES - whole.size
    for name, question in whole.questions.items():
        told = [_with_new_rows(answer, before) for answer in _told(whole, name, question, ds)]
        most = room if question.budget is None else min(room, question.budget - spent.get(name, 0))
        chosen = affordable(told, before, most, len(whole.runs), question.budget)
        taken = sum(cost(answer, before, len(whole.runs)) for answer in chosen)
        spent[name], room = spent.get(name, 0) + taken, room - taken
        answers += chosen
    rows = merged(row for answer in answers for row in answer.requests)
    return rounds.with_round(rows, [answer.record() for answer in answers], spent)


def _told(sweep: "Sweep", name: str, question: Question, ds: "xr.Dataset") -> list[Answer]:
    return proposer_of(name, question).tell(ds, sweep.analyses.get(question.of, {}))


def _seeds_of_rows(ds: "xr.Dataset", rounds: Rounds) -> Seeds:
    """Return a function that gives the number of seeds that a row has, or has been asked for: 0 for a new one."""
    counts = seeds_asked(ds).max("dynamics")
    dims = row_dims(ds)
    places = {dim: {value: index for index, value in enumerate(ds[dim].values.tolist())} for dim in dims}
    there = values_at(counts, dims)
    asked = {_place(row): row.seeds for rows in rounds.rows for row in rows}

    def seeds(row: Row) -> int:
        index = [places[dim].get(row.at[dim]) for dim in dims]
        known = 0 if None in index else int(there[tuple(index)])
        return max(known, asked.get(_place(row), 0))

    return seeds


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(sorted(row.at.items()))


def _with_new_rows(answer: Answer, before: Seeds) -> Answer:
    """Return an answer with those of its requests that ask for more than there is; without any it is not given."""
    new = tuple(row for row in answer.requests if row.seeds > before(row))
    if answer.state is State.open and not new:
        return replace(answer, state=State.none, why=f"{answer.why}; no more seeds of it may be run", requests=())
    return replace(answer, requests=new)


def cost(answer: Answer, before: Seeds, runs: int) -> int:
    """Return the number of cases that the requests of an answer add, for this number of runs."""
    return runs * sum(row.seeds - before(row) for row in answer.requests)


def affordable(answers: Iterable[Answer], before: Seeds, room: int, runs: int, budget: int | None) -> list[Answer]:
    """Return the answers with the requests for which there is room, those that need least first.

    Room is kept for all that an answer needs, so that as many as possible are given.
    """
    kept = list(answers)
    needs = [max(cost(answer, before, runs), runs * answer.cases if math.isfinite(answer.cases) else 0)
             for answer in kept]  # fmt: skip
    limit = f"the limit of {CASES:,} cases of a sweep" if budget is None else f"its budget of {budget:,} cases"
    for place in sorted(range(len(kept)), key=needs.__getitem__):
        if kept[place].requests:
            if needs[place] <= room:
                room -= int(needs[place])
            else:
                kept[place] = replace(kept[place], why=f"{kept[place].why}, and {limit} does not suffice", requests=())
    return kept


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with one for each point, with the most seeds that are asked for and all reasons."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        other = found.get(_place(row), row)
        reason = other.reason if row.reason in other.reason.split("; ") else f"{other.reason}; {row.reason}"
        found[_place(row)] = Row(row.at, max(row.seeds, other.seeds), reason)
    return list(found.values())
