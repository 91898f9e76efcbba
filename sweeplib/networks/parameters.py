"""The parameters of problems, and the options of dynamics, as grids ask for them.

A name of a grid is a field of problems or, as `sde.step`, an option of a run.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Annotated, Any

from sweeplib.engine.base.table import Table
from sweeplib.engine.parameters import Parameters
from sweeplib.errors import InputError
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.problem import NAMED_FIELDS, PARAMETERS, checked_name, synonyms
from sweeplib.networks.problem.columns import ProblemRow, Problems
from sweeplib.networks.problem.problem import CHECKS
from sweeplib.networks.views import VIEW_DIMS

RESERVED = frozenset({"clock", "threshold", "time", *VIEW_DIMS})
"""Names of dimensions and coordinates of datasets, which no axis of a grid can have."""
GROUP = re.compile(r"p\d+_k\d+")
"""The names of the groups of a dataset that hold the overlap matrices of one pair of widths (p, k)."""


class NetworkParameters(Parameters):
    """Fields of problems; `sde.step` is the option `step` of the run `sde`."""

    kind, section = "field of a problem", "problem"
    needed = ("gamma", "p", "k", "d", "Delta", "activation")

    def names(self) -> Collection[str]:
        """Return the names of the fields of a problem, with those of all registered parts."""
        return PARAMETERS.keys()

    def type_of(self, name: str) -> Any:
        """Return the type of a field or of an option, None for an unknown field; InputError for an unknown option."""
        run, dot, option = name.rpartition(".")
        if not dot:
            return PARAMETERS[name].type if name in PARAMETERS else None
        fields = DYNAMICS[run].Options.model_fields
        if option not in fields:
            expected = None if fields else f"none: {run} has no options"
            raise InputError(f"{run} has no such option", value=option, expected=expected, choices=fields)
        return Annotated[fields[option].annotation, fields[option]]

    def is_reserved(self, name: str) -> bool:
        """Return whether a dataset has the name already, as a dimension or as a group of arrays over units."""
        return name in RESERVED or GROUP.fullmatch(name) is not None

    def texts(self) -> Collection[str]:
        """Return the fields whose values are names, formulas or laws."""
        return NAMED_FIELDS.keys() - {"a_star"}

    def of_code(self) -> Collection[str]:
        """Return the same fields: each name, formula or law has code of its own, and each pair of activations."""
        return self.texts()

    def canonical(self, name: str, value: Any, key: str) -> Any:
        """Return the value of a field with the canonical spelling of names and formulas; InputError at `key`."""
        return value if value is None or name not in NAMED_FIELDS else checked_name(name, value, key)

    def expected(self, name: str) -> str | None:
        """Return what values of a second layer are, in words; None for other fields, whose type says it."""
        if name not in ("a", "a_star"):
            return None
        laws = "; `normal` or `signs`" if name == "a" else "; or `power(beta)`, a power law in the units"
        return f"a finite number, or a list of them, one per unit{laws}"

    def synonyms(self) -> Mapping[str, str]:
        """Return fields by other words that may be meant to be them."""
        return synonyms()

    def check(self, points: Table, refuse: Callable[[InputError, int], None]) -> None:
        """Check each different problem of some points; pass an InputError and the number of its point to `refuse`."""
        fields = {name: column for name, column in points.columns.items() if name in PARAMETERS}
        problems = Problems(fields, len(points))
        for check in CHECKS:
            problems.column_of(partial(_check, check, refuse), ProblemRow)


def _check(check: Callable[[Any], None], refuse: Callable[[InputError, int], None], row: ProblemRow) -> None:
    """Run a check of a problem; pass an InputError on to `refuse`, with the number of the problem's row."""
    try:
        check(row)
    except InputError as error:
        refuse(error, row.read.row)
