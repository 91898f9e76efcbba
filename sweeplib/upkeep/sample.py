"""A random sample of the stored cases, which is computed again; its bits must be those in the store."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeplib.execution.calibration import SECONDS_A_WORK_UNIT
from sweeplib.storage.provenance import cpu_model
from sweeplib.upkeep.comparison import Compared, comparable_rows, compared
from sweeplib.upkeep.finding import Finding, Remedy
from sweeplib.upkeep.stored_cases import StoredCases

SIZE, SECONDS = 16, 60.0
"""Without a number, a sample has at most so many cases, and fewer if they are expected to take longer."""


@dataclass(frozen=True)
class Sample:
    """Rows of the run store to compute again, by dynamics and layout; `expensive` others were left out."""

    rows: Sequence[tuple[StoredCases, str, list[int]]]
    expensive: int = 0

    @property
    def size(self) -> int:
        """Return the number of cases."""
        return sum(len(rows) for _, _, rows in self.rows)


def draw(stored: Sequence[StoredCases], number: int | None) -> Sample:
    """Return `number` intact cases that a sweep needs, drawn at random; without a number, as many as take a minute."""
    layouts = [(each, name, rows) for each in stored for name, rows in _comparable(each)]
    ends = np.cumsum([len(rows) for _, _, rows in layouts], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    drawn = random.sample(range(total), min(total, SIZE if number is None else number))
    seconds, chosen = 0.0, list[int]()
    for place in drawn:
        each, name, _ = layouts[int(np.searchsorted(ends, place, side="right"))]
        seconds += SECONDS_A_WORK_UNIT * each.store.layouts[name].work
        if number is not None or seconds <= SECONDS:
            chosen.append(place)
    starts = [0, *ends.tolist()]
    inside = [
        (each, name, sorted(int(rows[place - start]) for place in chosen if start <= place < start + len(rows)))
        for (each, name, rows), start in zip(layouts, starts, strict=False)
    ]
    return Sample([part for part in inside if part[2]], len(drawn) - len(chosen))


def recomputed(sample: Sample) -> tuple[dict[str, int], list[Finding], list[str]]:
    """Compute a sample again; return the number of cases by dynamics, those with other bits, and notes.

    Cases that were computed on another type of processor are only noted if they differ.
    """
    counts: dict[str, int] = {}
    findings, notes = [], []
    for stored, name, rows in sample.rows:
        counts[stored.dynamics] = counts.get(stored.dynamics, 0) + len(rows)
        for outcome in compared(stored.store.layouts[name], rows, stored.directory, stored.dynamics):
            if outcome.differences and outcome.comparable:
                findings.append(_finding(stored, outcome))
            elif outcome.differences:
                where = f"{stored.described((outcome.identity,))} computed on {', '.join(outcome.processors)}"
                notes.append(f"{where}, not on {cpu_model()}: {outcome.differences[0]}")
    return counts, findings, notes


def _finding(stored: StoredCases, outcome: Compared) -> Finding:
    layout, identity = outcome.layout, outcome.identity
    problem = f"the case {identity.hex()} computed again has other bits: {outcome.differences[0]}"
    words, block = stored.described((identity,)), outcome.row // layout.block_size
    return Finding(layout.path, problem, Remedy.block, stored.dynamics, layout.name, block, (identity,), words)


def _comparable(stored: StoredCases) -> list[tuple[str, np.ndarray]]:
    """Return the rows of each layout that the sweep needs and that can be computed again."""
    if stored.cases is None:
        return []
    wanted = stored.cases.wanted
    return [
        (name, np.intersect1d(comparable_rows(status), wanted.row[wanted.layout == number]))
        for number, (name, status) in enumerate(zip(stored.store.layouts, stored.store.statuses(), strict=True))
    ]
