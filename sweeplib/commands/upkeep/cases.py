"""The cases of a sweep by name: a case is named by its coordinates, and found by these or by its identity.

The inventory of a dynamics lists the cases that the config needs; a place is a position in it. The store has segments,
each with a row for each case.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.design.design import Design
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.run_store import RunStore, whole
from sweeplib.engine.storage.store.segment import Segment
from sweeplib.errors import InputError

MOST_VALUES = 4
"""The most values of a coordinate that a message lists one by one."""
SHORTEST = 4
"""The fewest hexadecimal digits of an identity that name a case."""
_NAME = re.compile(r"(?:^|,)\s*([^\W\d][\w.-]*)\s*=")
"""A name of a coordinate in a text such as p=4,gamma=.1."""


@dataclass(frozen=True)
class CasesByName:
    """The cases of one dynamics that a sweep needs, and those of them in the run store."""

    wanted: Inventory

    def places(self, ids: Iterable[bytes]) -> np.ndarray:
        """Return the first place in the inventory of each of those identities that the sweep needs, ascending."""
        distinct = self.wanted.distinct
        return distinct[np.isin(self.wanted.ids[distinct], np.array([*ids], "S16"))]

    def coordinates(self, place: int) -> dict[str, Any]:
        """Return the coordinates of a case, by its place in the inventory."""
        names = ("dynamics", *self.wanted.sweep.grid.dims, "seed")
        return {name: self.wanted.column(name, np.array([place]))[0] for name in names}

    def described(self, ids: Sequence[bytes]) -> str:
        """Return the cases with these identities in words: their number, and the values of coordinates that occur."""
        places = self.places(ids)
        others = len(ids) - len(places)
        words = [f"{counted(others)} that this config does not have"] if others else []
        if len(places):
            names = (*self.wanted.sweep.grid.dims, "seed")
            values = ", ".join(f"{name}={_extent(self.wanted.column(name, places))}" for name in names)
            words.insert(0, f"{counted(len(places))} of {self.wanted.dynamics}: {values}")
        return "; ".join(words)


def _extent(column: np.ndarray) -> str:
    """Return the different values of a column in words: a few as 1|2|4, many as 1..64 (7)."""
    values = sorted(set(column.tolist()), key=lambda value: (isinstance(value, str), value))
    if len(values) <= MOST_VALUES:
        return "|".join(map(str, values))
    return f"{values[0]}..{values[-1]} ({len(values)})"


def name_of(coordinates: Mapping[str, Any]) -> str:
    """Return coordinates as they are given to a command: p=4,gamma=0.1,seed=3."""
    return ",".join(f"{name}={value}" for name, value in coordinates.items())


@dataclass(frozen=True)
class ChosenCase:
    """A case of a sweep that was chosen by name, with the segment and the row that it has in the store, if any."""

    case: Case
    identity: bytes
    coordinates: Mapping[str, Any]
    store: RunStore
    segment: Segment | None
    row: int
    status: Status


def chosen_case(sweep: Design, directory: Path, text: str) -> ChosenCase:
    """Return the case with an identity that begins with `text`, or with the coordinates in `text`.

    Coordinates are values of names of the grid, `seed` and `dynamics`: p=4,gamma=.1,seed=3,dynamics=sgd. InputError if
    there is not exactly one such case.
    """
    values = _coordinates_in(text, sweep)
    dynamics_named = None if values is None else values.pop("dynamics", None)
    # a law is that of several runs, which the dataset has under its name
    runs = {name: (name,) for name in sweep.runs} | sweep.laws
    if dynamics_named is not None and dynamics_named not in runs:
        names = [*dict.fromkeys((*sweep.laws, *sweep.runs))]
        raise InputError("not a dynamics of this sweep", key="dynamics", value=dynamics_named, choices=names)
    matches = []
    for dynamics in sweep.runs if dynamics_named is None else runs[dynamics_named]:
        cases = CasesByName(inventory(sweep, dynamics, RunStore(directory, dynamics)))
        places = _places_of_identity(cases, text) if values is None else _places_of_coordinates(cases, values)
        _, first = np.unique(cases.wanted.ids[places], return_index=True)  # a case may be at several points
        matches.append((cases, places[np.sort(first)]))
    if sum(len(places) for _, places in matches) != 1:
        raise _refusal(matches, text, values)
    [(cases, [place])] = [(cases, places) for cases, places in matches if len(places)]
    return _case_at(cases, int(place))


def is_case(text: str) -> bool:
    """Return whether a text has the form of an identity or of coordinates."""
    return bool(_NAME.match(text) or re.fullmatch(rf"[0-9a-f]{{{SHORTEST},32}}", text))


def _coordinates_in(text: str, sweep: Design) -> dict[str, str] | None:
    """Return the coordinates in a text, None if it is an identity; InputError for names that are no coordinates."""
    names = [match.group(1) for match in _NAME.finditer(text)]
    if not names:
        if not is_case(text):
            expected = f"an identity ({SHORTEST} to 32 hexadecimal digits), or coordinates such as p=4,gamma=.1,seed=3"
            raise InputError("not a case", value=text, expected=expected)
        return None
    before, *parts = _NAME.split(text)
    if before.strip():
        raise InputError("not a coordinate", value=before, expected="coordinates such as p=4,gamma=.1,seed=3")
    values = [value.strip() for value in parts[1::2]]
    choices = [*sweep.grid.names, "seed", "dynamics"]
    for name in names:
        if name not in choices:
            raise InputError("not a coordinate of this sweep", key=name, value=name, choices=choices)
    if len(set(names)) < len(names):
        raise InputError("a coordinate is given twice", value=text)
    return dict(zip(names, values, strict=True))


def _places_of_identity(cases: CasesByName, text: str) -> np.ndarray:
    """Return the places (n,) of cases whose identity begins with a text of hexadecimal digits."""
    ids = cases.wanted.ids.tolist()
    places = [place for place, identity in enumerate(ids) if whole(identity).hex().startswith(text)]
    return np.array(places, np.int64)


def _places_of_coordinates(cases: CasesByName, coordinates: Mapping[str, str]) -> np.ndarray:
    """Return the places (n,) of cases that have these coordinates, texts by name."""
    is_match = np.ones(len(cases.wanted.ids), bool)
    for name, text in coordinates.items():
        column = cases.wanted.column(name).tolist()
        is_equal = {value: _is_equal(value, text) for value in set(column)}
        is_match &= np.array([is_equal[value] for value in column], bool)
    return np.flatnonzero(is_match)


def _is_equal(value: Any, text: str) -> bool:
    """Return whether a text states a value: whole numbers are equal, others agree to 12 digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() == text.lower() if isinstance(value, bool) else str(value) == text
    try:
        if isinstance(value, int) and re.fullmatch(r"\s*[+-]?\d+\s*", text):
            return int(text) == value
        return bool(np.isclose(float(text), value, rtol=1e-12, atol=0.0))
    except ValueError:
        return False


def _refusal(matches: list[tuple[CasesByName, np.ndarray]], text: str, values: Mapping[str, str] | None) -> InputError:
    """Return the error that not exactly one case was found: what else distinguishes them, or which value is wrong.

    matches : the places of the cases found, by dynamics. text : what was asked for. values : its coordinates, None if
    it is an identity.
    """
    several = [(cases, places) for cases, places in matches if len(places)]
    if several:
        number = sum(len(places) for _, places in several)
        if values is None:
            return InputError(f"{number} cases have such an identity", value=text, expected="more digits")
        cases, places = several[0]
        columns = {name: cases.wanted.column(name, places) for name in (*cases.wanted.sweep.grid.dims, "seed")}
        differing = [f"{name} ({_extent(column)})" for name, column in columns.items() if len(set(column.tolist())) > 1]
        differing += [f"dynamics ({'|'.join(case.wanted.dynamics for case, _ in several)})"] if len(several) > 1 else []
        return InputError(f"{number} cases have these coordinates", value=text, expected=f"also {', '.join(differing)}")
    for name, value in (values or {}).items():
        occurring = {other for cases, _ in matches for other in cases.wanted.column(name).tolist()}
        if not any(_is_equal(other, value) for other in occurring):
            return InputError("no case has this value", key=name, value=value, choices=map(str, occurring))
    problem = "no case of this config has this identity" if values is None else "no case has all of these coordinates"
    return InputError(problem, value=text)


def _case_at(cases: CasesByName, place: int) -> ChosenCase:
    """Return the case at a place of the inventory, with its position in the store if it is there."""
    wanted, identity = cases.wanted, whole(bytes(cases.wanted.ids[place]))
    number, row = int(wanted.segment[place]), int(wanted.row[place])
    segment = wanted.store.segments[number] if number >= 0 else None
    case = (wanted.cases(np.array([place])) if segment is None else segment.cases(slice(row, row + 1)))[0]
    status = Status(int(wanted.status[place]))
    return ChosenCase(case, identity, cases.coordinates(place), wanted.store, segment, row, status)
