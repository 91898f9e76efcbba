"""What a seed of a row costs: processor seconds, from the blocks that a sweep has computed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.design.questions import Row, with_rows
from sweeplib.execution.calibration import SECONDS_A_WORK_UNIT
from sweeplib.simulation import case_work
from sweeplib.storage.records.files import read_lines
from sweeplib.storage.store.journal import journal
from sweeplib.storage.store.layout import cost_class
from sweeplib.storage.store.run_store import RunStore

if TYPE_CHECKING:
    from sweeplib.design.design import Design

Price = Callable[[Row], float]


def measured_prices(sweep: "Design", directory: Path) -> dict[str, float]:
    """Return the seconds of a unit of work of each dynamics, in the blocks that were computed here.

    Where none was, the nominal seconds.
    """
    return {dynamics: _seconds_a_unit(RunStore(directory, dynamics), directory) for dynamics in sweep.runs}


def _seconds_a_unit(store: RunStore, directory: Path) -> float:
    works = {name: layout.work for name, layout in store.layouts.items()}
    lines = [line for line in read_lines(journal(directory, store.dynamics)) if sum(line["computed"].values())]
    parts = [(line["seconds"], sum(line["computed"].values()) * works[line["block"].split("/")[0]]) for line in lines]
    work = sum(work for _, work in parts)
    return sum(seconds for seconds, _ in parts) / work if work else SECONDS_A_WORK_UNIT


def price_of_rows(whole: "Design", new: Iterable[Row], prices: Mapping[str, float]) -> Price:
    """Return the seconds that a seed of each of the `new` rows takes in all dynamics that run there."""
    sweep = with_rows(whole, [tuple(new)])
    seconds: Counter[int] = Counter()
    for dynamics, price in prices.items():
        points = sweep.points(dynamics)
        works = price * 4.0 ** cost_class(points.cases.numbers(case_work))
        seconds.update(dict(zip((points.flat // len(sweep.seeds)).tolist(), works.tolist(), strict=True)))

    def of(row: Row) -> float:
        index = [axis.place_of[row.at[axis.name]] for axis in sweep.grid.axes]
        return seconds[int(np.ravel_multi_index(index, sweep.grid.shape)) if index else 0]

    return of
