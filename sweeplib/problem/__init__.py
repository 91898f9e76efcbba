"""Problem, one point of a sweep; targets and starts, one per file."""

from sweeplib.problem.expectations import problem_expectations
from sweeplib.problem.problem import (
    CONSTANT_RATE,
    DEFAULTS,
    NAMED_FIELDS,
    OBSERVED_FIELDS,
    PROBLEM_FIELDS,
    Problem,
    checked_name,
)
from sweeplib.problem.starts import STARTS, Start
from sweeplib.problem.targets import TARGETS, Target, target

__all__ = [
    "CONSTANT_RATE",
    "DEFAULTS",
    "NAMED_FIELDS",
    "OBSERVED_FIELDS",
    "PROBLEM_FIELDS",
    "STARTS",
    "TARGETS",
    "Problem",
    "Start",
    "Target",
    "checked_name",
    "problem_expectations",
    "target",
]
