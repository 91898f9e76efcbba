"""Stored cases computed again, one by its name or a random sample, and compared with the store, bit by bit.

A segment of the run store has a row for each of its cases.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.commands.upkeep.stored_cases import StoredCases
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT
from sweeplib.engine.records import Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.provenance import is_like_here, machine
from sweeplib.engine.storage.store.segment import Segment, fill_value

SIZE, SECONDS = 16, 60.0
"""Without a number, a sample has at most so many cases, and fewer if they are expected to take longer."""


def differences(segment: Segment, row: int, records: Records, place: int) -> dict[str, str]:
    """Return in words how a stored case differs from a computed one, the case `place` of some records, by variable."""
    words = {"status": _difference("status", segment.status[row].astype(float), records.status[place].astype(float))}
    for name in segment.variables:
        values = segment.data(name)[row]
        # a case that failed has no data: the store has fill values
        others = records.data[name][place] if name in records.data else np.full_like(values, fill_value(values.dtype))
        words[name] = _difference(name, values, others)
    return {name: text for name, text in words.items() if text}


def _difference(name: str, stored: np.ndarray, computed: np.ndarray) -> str:
    """Return in words how two arrays of one shape differ in their bits, with the first such values; "" if equal."""
    flat, other = (np.ascontiguousarray(values).reshape(-1) for values in (stored, computed))
    bits = (values.view(np.uint8).reshape(len(values), -1) for values in (flat, other))
    differing = np.flatnonzero(np.not_equal(*bits).any(axis=1))
    if not len(differing):
        return ""
    first = int(differing[0])
    where = ", ".join(str(int(index)) for index in np.unravel_index(first, np.shape(stored)))
    variable = f"{name}[{where}]" if where else name
    values = f"{variable} is {float(flat[first])!r} in the store, {float(other[first])!r} here"
    return f"{len(differing)} of {len(flat)} values of {name} differ: {values}"


class Recomputation(NamedTuple):
    """A row of a segment that was computed again: the identity of its case, and the differences (`differences`)."""

    segment: Segment
    row: int
    identity: bytes
    differences: dict[str, str]

    @property
    def first(self) -> str:
        """Return the first difference in words."""
        return next(iter(self.differences.values()))


def comparisons(segment: Segment, rows: Sequence[int]) -> list[Recomputation]:
    """Return the comparisons of some rows of a segment, whose cases are computed in this process."""
    cases = segment.cases(np.array(rows))
    results = []
    for places in cases.of_one_shape():
        try:
            records = segment.simulator.run(cases.at(places))
        except Exception:
            # of any plugin; which case raised it is found out one by one
            if len(places) > 1:
                results += [outcome for place in places.tolist() for outcome in comparisons(segment, [rows[place]])]
                continue
            records = Records({}, np.array([Status.failed], np.uint8))
        for at, place in enumerate(places.tolist()):
            of_case = differences(segment, rows[place], records, at)
            results.append(Recomputation(segment, rows[place], cases[place].identity(), of_case))
    return results


def comparable(status: np.ndarray) -> np.ndarray:
    """Return a mask, by `status` (n,): cases that would have the same outcome again, as they ended by themselves."""
    return np.isin(status, (Status.ok, Status.diverged, Status.inaccurate))


@dataclass(frozen=True)
class Sample:
    """Rows of the run store to compute again, by dynamics and segment; `expensive` is the number that was left out."""

    rows: Sequence[tuple[StoredCases, Segment, list[int]]]
    expensive: int = 0

    @property
    def size(self) -> int:
        """Return the number of cases."""
        return sum(len(rows) for _, _, rows in self.rows)


def random_sample(stored: Sequence[StoredCases], number: int | None) -> Sample:
    """Return `number` intact cases that a sweep needs, drawn at random; of SIZE as many as take SECONDS, for None."""
    parts = [(cases, segment, rows) for cases in stored for segment, rows in _rows_by_segment(cases)]
    starts = np.cumsum([0, *(len(rows) for _, _, rows in parts)], dtype=np.int64)
    total = int(starts[-1])
    places = random.sample(range(total), min(total, SIZE if number is None else number))
    seconds, expensive, chosen = 0.0, 0, dict[int, list[int]]()
    for place in places:
        source = int(np.searchsorted(starts, place, side="right")) - 1
        _, segment, rows = parts[source]
        seconds += SECONDS_A_WORK_UNIT * segment.work
        if number is not None or seconds <= SECONDS:
            chosen.setdefault(source, []).append(int(rows[place - starts[source]]))
        else:
            expensive += 1
    return Sample([(*parts[source][:2], sorted(chosen[source])) for source in sorted(chosen)], expensive)


def sample_findings(sample: Sample) -> tuple[dict[str, int], list[Finding], list[str]]:
    """Compute a sample again; return the number of cases by dynamics, those with other bits, and notes.

    Cases that were computed on another type of processor, or by another numba, are only noted if they differ.
    """
    outcomes: dict[str, list[tuple[StoredCases, Recomputation]]] = {}
    for stored, segment, rows in sample.rows:
        compared = comparisons(segment, rows)
        outcomes.setdefault(stored.dynamics, []).extend((stored, outcome) for outcome in compared)
    findings, notes = [], []
    for of_dynamics in outcomes.values():
        differing = [(stored, outcome) for stored, outcome in of_dynamics if outcome.differences]
        why = "all cases of the sample differ, as with other libraries or hardware"
        refusal = why if len(differing) == len(of_dynamics) > 1 else ""
        if differing and not _is_reproducible(differing[0][1]):
            refusal = "computed twice here, a case has two results: it depends on more than its values and its seed"
        for stored, outcome in differing:
            if is_like_here(processors := outcome.segment.processors):
                findings.append(_finding(stored, outcome, refusal))
            else:
                where = f"{stored.described((outcome.identity,))} computed on {', '.join(processors)}"
                notes.append(f"{where}, not on {machine()}: {outcome.first}")
    return {dynamics: len(compared) for dynamics, compared in outcomes.items()}, findings, notes


def _is_reproducible(outcome: Recomputation) -> bool:
    """Return whether a case that differs from the store does so in the same way if it is computed once more."""
    [again] = comparisons(outcome.segment, [outcome.row])
    return again.differences == outcome.differences


def _finding(stored: StoredCases, outcome: Recomputation, refusal: str) -> Finding:
    """Return the finding about a case with other bits; it is not computed again if that would make nothing better.

    refusal : why not, of all cases of the dynamics' sample; "" if it would.
    """
    identity, remedy, why = outcome.identity, Remedy.cases, ""
    if refusal:
        remedy, why = Remedy.refused, refusal
    elif "status" in outcome.differences:
        remedy, why = Remedy.refused, "it does not end here as in the store: `sweeplib reproduce` shows how"
    problem = f"the case {identity.hex()} computed again has other bits: {outcome.first}"
    words = stored.described((identity,))
    return Finding(
        outcome.segment.path, problem, remedy, stored.dynamics, "simulate", cases=(identity,), words=words, why=why
    )


def _rows_by_segment(stored: StoredCases) -> list[tuple[Segment, np.ndarray]]:
    """Return the rows of each segment that the sweep needs and that can be computed again."""
    if stored.cases is None:
        return []
    segments = stored.store.segments
    parts = ((segments[number], np.unique(rows)) for number, rows, _ in stored.cases.wanted.by_segment())
    return [(segment, rows[comparable(segment.status[rows])]) for segment, rows in parts]
