"""Stored cases computed again, one by its name or a random sample, and compared with the store, bit by bit."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.commands.upkeep.stored_cases import StoredCases
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT
from sweeplib.engine.records import Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.provenance import cpu_model
from sweeplib.engine.storage.store.journal import processors
from sweeplib.engine.storage.store.layout import Layout

SIZE, SECONDS = 16, 60.0
"""Without a number, a sample has at most so many cases, and fewer if they are expected to take longer."""


@dataclass(frozen=True)
class Difference:
    """A recorded variable of a case whose bits differ: how many of its values, and the first of them."""

    variable: str
    count: int
    size: int
    where: tuple[int, ...]
    stored: float
    computed: float

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.where))}]" if self.where else ""
        first = f"{self.variable}{where} is {self.stored!r} in the store, {self.computed!r} here"
        return f"{self.count} of {self.size} values of {self.variable} differ: {first}"


def differences(layout: Layout, row: int, records: Records, place: int) -> list[Difference]:
    """Return how a stored case differs from a computed one, the case `place` of some records."""
    stored = layout.status(slice(row, row + 1)).astype(float)
    computed = records.status[place : place + 1].astype(float)
    comparisons = [_difference("status", stored[0], computed[0])]
    block, place_in_block = divmod(row, layout.block_size)
    for name in layout.variables:
        values = records.data[name][place] if name in records.data else layout.empty(name, 1)[0]
        comparisons.append(_difference(name, layout.block_data(name, block)[place_in_block], values))
    return [difference for difference in comparisons if difference is not None]


def _difference(name: str, stored: np.ndarray, computed: np.ndarray) -> Difference | None:
    """Return how two arrays of one shape differ in their bits, None if they do not."""
    flat, other = (np.ascontiguousarray(values).reshape(-1) for values in (stored, computed))
    bits = (values.view(np.uint8).reshape(len(values), -1) for values in (flat, other))
    differing = np.flatnonzero(np.not_equal(*bits).any(axis=1))
    if not len(differing):
        return None
    first = int(differing[0])
    where = tuple(int(index) for index in np.unravel_index(first, np.shape(stored)))
    return Difference(name, len(differing), len(flat), where, float(flat[first]), float(other[first]))


@dataclass(frozen=True)
class Recomputation:
    """A row of a layout that was computed again: its identity, the differences, and the processors that computed it."""

    layout: Layout
    row: int
    identity: bytes
    differences: list[Difference]
    processors: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        """Return whether the case was computed on this type of processor; others may differ in the last bits."""
        return not self.processors or cpu_model() in self.processors


def comparisons(layout: Layout, rows: Sequence[int], directory: Path, dynamics: str) -> list[Recomputation]:
    """Return the comparisons of some rows of a layout, whose cases are computed in this process."""
    cases = layout.cases(np.array(rows))
    by_block = processors(directory, dynamics)
    results = []
    for places in cases.of_one_shape():
        try:
            records = layout.simulator.run(cases.at(places))
        except Exception:  # that of any plugin; which case raised it is found out one by one
            if len(places) > 1:
                alone = (comparisons(layout, [rows[place]], directory, dynamics) for place in places.tolist())
                results += [outcome for outcomes in alone for outcome in outcomes]
                continue
            records = Records({}, np.array([Status.failed], np.uint8))
        for at, place in enumerate(places.tolist()):
            block = f"{layout.name}/{rows[place] // layout.block_size}"
            which = differences(layout, rows[place], records, at)
            by = tuple(by_block.get(block, ()))
            results.append(Recomputation(layout, rows[place], cases[place].identity(), which, by))
    return results


def comparable_rows(status: np.ndarray) -> np.ndarray:
    """Return the rows, from the status of all, that would have the same outcome again: they ended by themselves."""
    return np.flatnonzero(np.isin(status, (Status.ok, Status.diverged, Status.inaccurate)))


@dataclass(frozen=True)
class Sample:
    """Rows of the run store to compute again, by dynamics and layout; `expensive` others were left out."""

    rows: Sequence[tuple[StoredCases, str, list[int]]]
    expensive: int = 0

    @property
    def size(self) -> int:
        """Return the number of cases."""
        return sum(len(rows) for _, _, rows in self.rows)


def random_sample(stored: Sequence[StoredCases], number: int | None) -> Sample:
    """Return `number` intact cases that a sweep needs, drawn at random; without a number, as many as take a minute."""
    layouts = [(cases, name, rows) for cases in stored for name, rows in _rows_by_layout(cases)]
    ends = np.cumsum([len(rows) for _, _, rows in layouts], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    places = random.sample(range(total), min(total, SIZE if number is None else number))
    seconds, chosen = 0.0, list[int]()
    for place in places:
        cases, name, _ = layouts[int(np.searchsorted(ends, place, side="right"))]
        seconds += SECONDS_A_WORK_UNIT * cases.store.layouts[name].work
        if number is not None or seconds <= SECONDS:
            chosen.append(place)
    starts = [0, *ends.tolist()]
    inside = [
        (cases, name, sorted(int(rows[place - start]) for place in chosen if start <= place < start + len(rows)))
        for (cases, name, rows), start in zip(layouts, starts, strict=False)
    ]
    return Sample([drawn_rows for drawn_rows in inside if drawn_rows[2]], len(places) - len(chosen))


def sample_findings(sample: Sample) -> tuple[dict[str, int], list[Finding], list[str]]:
    """Compute a sample again; return the number of cases by dynamics, those with other bits, and notes.

    Cases that were computed on another type of processor are only noted if they differ.
    """
    outcomes: dict[str, list[tuple[StoredCases, Recomputation]]] = {}
    for stored, name, rows in sample.rows:
        compared = comparisons(stored.store.layouts[name], rows, stored.directory, stored.dynamics)
        outcomes.setdefault(stored.dynamics, []).extend((stored, outcome) for outcome in compared)
    findings, notes = [], []
    for of_dynamics in outcomes.values():
        differing = [(stored, outcome) for stored, outcome in of_dynamics if outcome.differences]
        all_differ = len(differing) == len(of_dynamics) > 1
        findings += [_finding(*pair, all_differ=all_differ) for pair in differing if pair[1].comparable]
        notes += [_other_processor_note(*pair) for pair in differing if not pair[1].comparable]
    return {dynamics: len(compared) for dynamics, compared in outcomes.items()}, findings, notes


def _other_processor_note(stored: StoredCases, outcome: Recomputation) -> str:
    where = f"{stored.described((outcome.identity,))} computed on {', '.join(outcome.processors)}"
    return f"{where}, not on {cpu_model()}: {outcome.differences[0]}"


def _finding(stored: StoredCases, outcome: Recomputation, *, all_differ: bool) -> Finding:
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


def _rows_by_layout(stored: StoredCases) -> list[tuple[str, np.ndarray]]:
    """Return the rows of each layout that the sweep needs and that can be computed again."""
    if stored.cases is None:
        return []
    wanted = stored.cases.wanted
    return [
        (name, np.intersect1d(comparable_rows(status), wanted.row[wanted.layout == number]))
        for number, (name, status) in enumerate(zip(stored.store.layouts, stored.store.statuses(), strict=True))
    ]
