"""Cases as rows of a layout: the columns of its index, and the fields that all its cases share.

The run store keeps a layout as this index and these fields, in JSON, from which the cases are made again.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sweeplib.engine.base.table import Column
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.problem.columns import columns_of
from sweeplib.networks.simulation.cases import Case
from sweeplib.networks.simulation.columns import Cases
from sweeplib.networks.simulation.recording import Recording

FIELDS = ("problem", "seed", "clock")
"""The fields of a case that are columns of an index: canonical problems as JSON, seeds, clocks."""


def index_of(cases: Cases) -> dict[str, np.ndarray]:
    """Return the columns (n,) of the index for n cases, by name."""
    columns = zip(
        FIELDS, (cases.texts(), cases.column("seed"), cases.column("clock")), (object, int, float), strict=True
    )
    return {name: column.array(dtype) for name, column, dtype in columns}


def shared_fields(case: Case) -> dict[str, Any]:
    """Return all fields of a case that its layout shares, as plain JSON values."""
    fields = {field.name: getattr(case, field.name) for field in dataclasses.fields(case)}
    shared = {name: value for name, value in fields.items() if name not in FIELDS}
    shared["recording"] = dataclasses.asdict(case.recording)
    return json.loads(json.dumps(shared, sort_keys=True))


def recording_of(shared: Mapping[str, Any]) -> Recording | None:
    """Return the recording in what `shared_fields` returned; None if it has observables that are not known here."""
    fields = {name: _tuples(value) for name, value in shared["recording"].items()}
    named = {*fields["observables"], fields.get("exit_on", "risk")}
    return Recording(**fields) if named <= OBSERVABLES.keys() else None


def cases_of(shared: Mapping[str, Any], index: Mapping[str, np.ndarray]) -> Cases:
    """Return the cases of a layout, from what `shared_fields` and `index_of` returned."""
    texts = index["problem"].tolist()
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    problems = json.loads(written := f"[{','.join(places)}]")
    # without a list in any text there is nothing to turn into tuples
    if "[" in written[1:]:
        problems = [{name: _tuples(value) for name, value in problem.items()} for problem in problems]
    columns = columns_of(problems, np.array([places[text] for text in texts], np.int32))
    columns |= {name: Column.of(index[name].tolist()) for name in ("seed", "clock")}
    values = {name: _tuples(value) for name, value in shared.items() if name != "recording"}
    values["recording"] = Recording(**{name: _tuples(value) for name, value in shared["recording"].items()})
    return Cases.of_one_value(values, len(texts)).replaced(**columns)


def _tuples(value: Any) -> Any:
    """A value of JSON with tuples in place of lists, also within."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
