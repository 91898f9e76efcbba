"""Problem, one point of a sweep; data laws, targets, starts, losses, updates and courses of tasks, one per file."""

from sweeplib.networks.problem.base_parameters import AVERAGES, CORE, TAILS
from sweeplib.networks.problem.data import DATA, DataLaw
from sweeplib.networks.problem.limits import Feature, Limit
from sweeplib.networks.problem.losses import LOSSES, Criterion, Loss
from sweeplib.networks.problem.parameters import (
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
from sweeplib.networks.problem.parts import READERS, meaningful, parts_of, read_by, refuse_unread
from sweeplib.networks.problem.problem import (
    CONSTANT_RATE,
    FORMULA_FIELDS,
    NAMED_FIELDS,
    Problem,
    checked_name,
    problem_expectations,
)
from sweeplib.networks.problem.starts import STARTS, Start
from sweeplib.networks.problem.targets import TARGETS, Target, registered_target, target
from sweeplib.networks.problem.tasks import TASKS, Course, Tasks
from sweeplib.networks.problem.updates import UPDATES, Rule, Update

__all__ = [
    "AVERAGES",
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
    "TAILS",
    "TARGETS",
    "TASKS",
    "UPDATES",
    "Course",
    "Criterion",
    "DataLaw",
    "Feature",
    "Limit",
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
