"""Problem, one point of a sweep; data laws, targets, starts, losses and steps, one per file."""

from sweeplib.problem.base_parameters import CORE
from sweeplib.problem.data import DATA, DataLaw
from sweeplib.problem.losses import LOSSES, Criterion, Loss
from sweeplib.problem.parameters import (
    DEFAULTS,
    PARAMETERS,
    Parameter,
    Parameters,
    Part,
    declare_parameters_of,
    names_with_parts,
    parameter,
    parameters_of,
    synonyms,
)
from sweeplib.problem.parts import READERS, meaningful, parts_of, read_by, refuse_unread
from sweeplib.problem.problem import (
    CONSTANT_RATE,
    FORMULA_FIELDS,
    NAMED_FIELDS,
    Problem,
    checked_name,
    problem_expectations,
)
from sweeplib.problem.starts import STARTS, Start
from sweeplib.problem.targets import TARGETS, Target, registered_target, target
from sweeplib.problem.tasks import TASKS, Course, Tasks
from sweeplib.problem.updates import UPDATES, Rule, Update

__all__ = [
    "CONSTANT_RATE",
    "CORE",
    "DATA",
    "DEFAULTS",
    "FORMULA_FIELDS",
    "LOSSES",
    "NAMED_FIELDS",
    "PARAMETERS",
    "READERS",
    "STARTS",
    "TARGETS",
    "TASKS",
    "UPDATES",
    "Course",
    "Criterion",
    "DataLaw",
    "Loss",
    "Parameter",
    "Parameters",
    "Part",
    "Problem",
    "Rule",
    "Start",
    "Target",
    "Tasks",
    "Update",
    "checked_name",
    "declare_parameters_of",
    "meaningful",
    "names_with_parts",
    "parameter",
    "parameters_of",
    "parts_of",
    "problem_expectations",
    "read_by",
    "refuse_unread",
    "registered_target",
    "synonyms",
    "target",
]
