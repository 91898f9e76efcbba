"""What goes with what: features of problems, and what is refused beside them whatever the dynamics.

Each dynamics has its own `limits` too, made from these features; bounds by numbers of one part stand with the part.
"""

from typing import TYPE_CHECKING

from sweeplib.networks.problem.data import DATA
from sweeplib.networks.problem.limits import Feature, Limit
from sweeplib.networks.problem.starts import STARTS
from sweeplib.networks.problem.targets import target
from sweeplib.networks.problem.updates import UPDATES

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

SPHERE = Feature("students on the sphere", lambda it: it.spherical)
OFFSETS = Feature("units with offsets", lambda it: it.has_offsets)
LOSS = Feature("the loss {it.loss} of {it.labels} labels", lambda it: not it.criterion.is_plain, "a loss, or signs")
UPDATE = Feature("the update {it.update}", lambda it: not UPDATES[it.update].is_plain, "an update that is not plain")
VELOCITIES = Feature("the update {it.update}", lambda it: UPDATES[it.update].has_velocities, "momentum")
TANGENT = Feature("the update {it.update}", lambda it: UPDATES[it.update].is_tangent, "steps along the sphere")
RESCALED = Feature("the update {it.update}", lambda it: UPDATES[it.update].factor is not None, "rescaled steps")
MEMORY = Feature("the update {it.update}", lambda it: UPDATES[it.update].memory is not None, "steps with a memory")
TEACHER = Feature("{it.data}", lambda it: DATA[it.data].teacher, "a teacher")
NO_TEACHER = Feature("{it.data}", lambda it: not DATA[it.data].teacher, "data without a teacher")
ORTHOGONAL = Feature("an orthogonal teacher", lambda it: it.teacher_start == "orthogonal")
NO_MIXTURE = Feature("inputs of {it.data}", lambda it: DATA[it.data].classes is None, "other inputs")
SPECTRUM = Feature("inputs of {it.data}", lambda it: it.has_spectrum, "inputs with a spectrum")
ONE_LEVEL = Feature("inputs of one eigenvalue", lambda it: not it.has_spectrum)
REPEATS = Feature("repeats > 1", lambda it: it.repeats > 1)
TASKS = Feature("tasks in turn", lambda it: it.in_turn)
REPLAY = Feature("tasks in turn", lambda it: it.in_turn and it.replay > 0.0, "replay")
OVERLAP = Feature("a task_overlap", lambda it: it.in_turn and it.task_overlap != 0.0)
TRAINING_SET = Feature("`samples`", lambda it: it.samples is not None, "a training set")
FRESH_SAMPLES = Feature("fresh samples", lambda it: it.samples is None)
DROPOUT = Feature("a keep_probability", lambda it: it.keep_probability < 1.0)
INPUT_NOISE = Feature("an input_noise", lambda it: it.input_noise > 0.0)
DISTURBED = Feature("dropout or noise of inputs", lambda it: it.is_disturbed)
UNRESOLVED = Feature("kinks off zero", lambda it: not _has_drifts(it))


_OF_UPDATES = "no update {it.update} with this {key}", "{default}, its default; or `update: plain`"
_OF_DISTURBED = "loss labels update tasks data samples repeats offset_scale offset_rate"
_UNDISTURBED = "not known with {beside}", "{default}, its default, with {beside}"
_OF_TASKS = "no tasks in turn", "{default} with {beside}"


def _has_drifts(problem: "Problem") -> bool:
    return target(problem.learned).expectations(problem.activation, problem.teacher).resolved


def _laws_without_teacher(_: "Problem") -> str:
    return "1 or more; or `data` without a teacher: " + ", ".join(law for law in DATA if not DATA[law].teacher)


def _target_width(problem: "Problem") -> str:
    return f"{target(problem.target).k}, for the target {problem.target}"


def _has_other_width(problem: "Problem") -> bool:
    return target(problem.target).k not in (None, problem.k)


def _differs(layer: object, width: int) -> bool:
    """Return whether a second layer is a list of another length than there are units."""
    return isinstance(layer, tuple) and len(layer) != width


def mixtures() -> list[str]:
    """The laws of inputs that are mixtures of isotropic Gaussians."""
    return [name for name in DATA if DATA[name].classes is not None]


WIDTHS = (
    Limit("d", "too many weights", "p d and k d less than 2^63", where=lambda it: max(it.p, it.k) * it.d >= 2**63),
    Limit("a", "wrong length", "{it.p} numbers, one a unit", where=lambda it: _differs(it.a, it.p)),
    Limit("a_star", "wrong length", "{it.k} numbers, one a unit", where=lambda it: _differs(it.a_star, it.k)),
)
"""The limits of the numbers of weights and of units."""
COMBINATIONS = (
    Limit("k", "a teacher without units", _laws_without_teacher, TEACHER, lambda it: it.k == 0),
    Limit("k", "{it.data} has no teacher", "0", NO_TEACHER, lambda it: it.k != 0),
    Limit(
        "start", "spherical students start on the sphere", "", SPHERE, lambda it: not STARTS[it.student_start].on_sphere
    ),
    Limit("offset_scale offset_rate", *_OF_UPDATES, UPDATE),
    Limit("weight_decay", *_OF_UPDATES, VELOCITIES),
    Limit("weight_decay", *_OF_UPDATES, TANGENT),
    Limit("schedule noise_schedule", *_OF_UPDATES, MEMORY),
    Limit("spherical", _OF_UPDATES[0], "false", VELOCITIES),
    Limit("spherical", _OF_UPDATES[0], "true: it is along the sphere", TANGENT, lambda it: not it.spherical),
    Limit("teacher_start", "no rows of a given overlap", beside=OVERLAP),
    Limit("teacher_block", "no rows of a given overlap", "null, rows with all coordinates, with {beside}", OVERLAP),
    Limit("target repeats samples data loss labels update noise_schedule offset_scale offset_rate", *_OF_TASKS, TASKS),
    Limit("batch_size", "no tasks in turn", "1, without `replay`, with {beside}", REPLAY),
    Limit(
        "schedule", "no optimal schedule", "one that is given, with {beside}", TASKS, lambda it: it.optimal is not None
    ),
    Limit("k", "the target needs another teacher width", _target_width, where=_has_other_width),
    Limit("sampling", "no training set to sample", "`samples` beside it, the size of the training set", FRESH_SAMPLES),
    Limit(
        "noise_schedule", "labels that never change", "null with {beside}, whose labels are drawn once", TRAINING_SET
    ),
    Limit(
        "batch_size",
        "a batch larger than the training set",
        "at most {it.samples}, its `samples`",
        TRAINING_SET,
        lambda it: it.batch_size > (it.samples or 0),
    ),
    Limit(_OF_DISTURBED, *_UNDISTURBED, DROPOUT),
    Limit(_OF_DISTURBED, *_UNDISTURBED, INPUT_NOISE),
    Limit("k", "no orthogonal teacher", "at most d = {it.d}", ORTHOGONAL, lambda it: it.k > it.d),
)
"""The limits of all dynamics."""
