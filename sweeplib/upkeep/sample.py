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
    outcomes: dict[str, list[tuple[StoredCases, Compared]]] = {}
    for stored, name, rows in sample.rows:
        found = compared(stored.store.layouts[name], rows, stored.directory, stored.dynamics)
        outcomes.setdefault(stored.dynamics, []).extend((stored, outcome) for outcome in found)
    findings, notes = [], []
    for of_dynamics in outcomes.values():
        differing = [(stored, outcome) for stored, outcome in of_dynamics if outcome.differences]
        all_differ = len(differing) == len(of_dynamics) > 1
        findings += [_finding(*each, all_differ=all_differ) for each in differing if each[1].comparable]
        notes += [_note(*each) for each in differing if not each[1].comparable]
    return {dynamics: len(found) for dynamics, found in outcomes.items()}, findings, notes


def _note(stored: StoredCases, outcome: Compared) -> str:
    where = f"{stored.described((outcome.identity,))} computed on {', '.join(outcome.processors)}"
    return f"{where}, not on {cpu_model()}: {outcome.differences[0]}"


def _finding(stored: StoredCases, outcome: Compared, *, all_differ: bool) -> Finding:
    """Return the finding about a case with other bits; it is not computed again if that would make nothing better."""
    layout, identity, remedy, why = outcome.layout, outcome.identity, Remedy.cases, ""
    if all_differ:
        remedy, why = (
            Remedy.refused,
            "all cases of the sample differ: no damage, but other libraries or hardware",
        )
    elif outcome.differences[0].variable == "status":
        remedy, why = Remedy.refused, "it does not end here as in the store: `sweeplib reproduce` shows how"
    problem = f"the case {identity.hex()} computed again has other bits: {outcome.differences[0]}"
    words, block = stored.described((identity,)), outcome.row // layout.block_size
    cases = (identity,)
    return Finding(layout.path, problem, remedy, stored.dynamics, "simulate", layout.name, block, cases, words, why)


def _comparable(stored: StoredCases) -> list[tuple[str, np.ndarray]]:
    """Return the rows of each layout that the sweep needs and that can be computed again."""
    if stored.cases is None:
        return []
    wanted = stored.cases.wanted
    return [
        (name, np.intersect1d(comparable_rows(status), wanted.row[wanted.layout == number]))
        for number, (name, status) in enumerate(zip(stored.store.layouts, stored.store.statuses(), strict=True))
    ]
