"""Problem, one point of a sweep; data laws, targets and starts, one per file."""

from sweeplib.problem.data import DATA, DataLaw
from sweeplib.problem.expectations import problem_expectations
from sweeplib.problem.problem import (
    CONSTANT_RATE,
    DEFAULTS,
    FORMULA_FIELDS,
    NAMED_FIELDS,
    OBSERVED_FIELDS,
    OFFSET_FIELDS,
    PROBLEM_FIELDS,
    Problem,
    checked_name,
)
from sweeplib.problem.starts import STARTS, Start
from sweeplib.problem.targets import TARGETS, Target, target

__all__ = [
    "CONSTANT_RATE",
    "DATA",
    "DEFAULTS",
    "FORMULA_FIELDS",
    "NAMED_FIELDS",
    "OBSERVED_FIELDS",
    "OFFSET_FIELDS",
    "PROBLEM_FIELDS",
    "STARTS",
    "TARGETS",
    "DataLaw",
    "Problem",
    "Start",
    "Target",
    "checked_name",
    "problem_expectations",
    "target",
]
