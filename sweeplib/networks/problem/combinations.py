"""What goes with what: features of problems, and what is refused beside them whatever the dynamics.

Each dynamics has its own `limits` too, made from these features; bounds by numbers of one part stand with the part.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeplib.networks.problem.data import DATA
from sweeplib.networks.problem.limits import Feature, Limit
from sweeplib.networks.problem.starts import STARTS
from sweeplib.networks.problem.targets import target
from sweeplib.networks.problem.updates import UPDATES, Update

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem


def _of_update(name: str, has: Callable[[Update], bool]) -> Feature:
    """The feature, with this name in documents, of problems whose update `has` something."""
    return Feature("the update {problem.update}", lambda problem: has(UPDATES[problem.update]), name)


# features in words, with whether a problem has them and, where the words say a value, their name in documents
SPHERE = Feature("students on the sphere", lambda problem: problem.spherical)
OFFSETS = Feature("units with offsets", lambda problem: problem.has_offsets)
LOSS = Feature(
    "the loss {problem.loss} of {problem.labels} labels",
    lambda problem: not problem.criterion.is_plain,
    "a loss, or signs",
)
UPDATE = _of_update("an update that is not plain", lambda update: not update.is_plain)
TANGENT = _of_update("steps along the sphere", lambda update: update.is_tangent)
RESCALED = _of_update("rescaled steps", lambda update: update.rescales)
SIGNS = _of_update("steps of signs", lambda update: update.takes_signs)
MEMORY = _of_update("steps with a memory", lambda update: update.memory is not None)
TEACHER = Feature("{problem.data}", lambda problem: DATA[problem.data].teacher, "a teacher")
NO_TEACHER = Feature("{problem.data}", lambda problem: not DATA[problem.data].teacher, "data without a teacher")
ORTHOGONAL = Feature("an orthogonal teacher", lambda problem: problem.teacher_start == "orthogonal")
NO_MIXTURE = Feature("inputs of {problem.data}", lambda problem: DATA[problem.data].classes is None, "other inputs")
SPECTRUM = Feature("inputs of {problem.data}", lambda problem: problem.has_spectrum, "inputs with a spectrum")
REPEATS = Feature("repeats > 1", lambda problem: problem.repeats > 1)
TASKS = Feature("tasks in turn", lambda problem: problem.in_turn)
REPLAY = Feature("tasks in turn", lambda problem: problem.in_turn and problem.replay > 0.0, "replay")
OVERLAP = Feature("a task_overlap", lambda problem: problem.in_turn and problem.task_overlap != 0.0)
TRAINING_SET = Feature("`samples`", lambda problem: problem.samples is not None, "a training set")
FRESH_SAMPLES = Feature("fresh samples", lambda problem: problem.samples is None)
DROPOUT = Feature("a keep_probability", lambda problem: problem.keep_probability < 1.0)
INPUT_NOISE = Feature("an input_noise", lambda problem: problem.input_noise > 0.0)
WEIGHT_NOISE = Feature("a temperature", lambda problem: problem.has_weight_noise)
AVERAGES = Feature("averages of the iterates", lambda problem: problem.has_averages)
NO_OUTLIERS = Feature("labels without outliers", lambda problem: problem.outlier_share == 0.0)
DISTURBED = Feature("dropout or noise of inputs", lambda problem: problem.is_disturbed)
UNRESOLVED = Feature("kinks off zero", lambda problem: not _has_drifts(problem))


# pairs of the reason and of what is expected, as `Limit` takes them
_OR_PLAIN = "{default}, its default; or `update: plain`"


def _has_drifts(problem: "Problem") -> bool:
    """Whether the kinks of activations and target are where the rules for drifts allow for them."""
    return target(problem.learned).expectations(problem.activation, problem.teacher).resolved


def _laws_without_teacher(_: "Problem") -> str:
    """What is expected of k where the data have a teacher, in words for an error."""
    return "1 or more; or `data` without a teacher: " + ", ".join(law for law in DATA if not DATA[law].teacher)


def _target_width(problem: "Problem") -> str:
    """The teacher width that the target needs, in words for an error."""
    return f"{target(problem.target).k}, for the target {problem.target}"


def _has_other_width(problem: "Problem") -> bool:
    """Whether the target needs a teacher width, and the problem has another one."""
    return target(problem.target).k not in (None, problem.k)


def _differs(layer: object, width: int) -> bool:
    """Return whether a second layer is a list of numbers whose length is not the `width` of its network."""
    return isinstance(layer, tuple) and len(layer) != width


def mixtures() -> list[str]:
    """The laws of inputs that are mixtures of isotropic Gaussians."""
    return [name for name in DATA if DATA[name].classes is not None]


GAUSSIAN_NOISE = Limit("noise_tail outlier_share", "known of Gaussian noise alone", "{default}, its default")
"""The limit of what knows Gaussian noise of labels alone."""
WIDTHS = (
    Limit(
        "d",
        "too many weights",
        "p d and k d less than 2^63",
        where=lambda problem: max(problem.p, problem.k) * problem.d >= 2**63,
    ),
    Limit("a", "wrong length", "{problem.p} numbers, one a unit", where=lambda problem: _differs(problem.a, problem.p)),
    Limit(
        "a_star",
        "wrong length",
        "{problem.k} numbers, one a unit",
        where=lambda problem: _differs(problem.a_star, problem.k),
    ),
)
"""The limits of the numbers of weights and of units."""
COMBINATIONS = (
    Limit("k", "a teacher without units", _laws_without_teacher, TEACHER, lambda problem: problem.k == 0),
    Limit("k", "{problem.data} has no teacher", "0", NO_TEACHER, lambda problem: problem.k != 0),
    Limit(
        "start",
        "spherical students start on the sphere",
        "",
        SPHERE,
        lambda problem: not STARTS[problem.student_start].on_sphere,
    ),
    Limit("weight_decay", "decay pulls along the row, which steps along the sphere leave out", _OR_PLAIN, TANGENT),
    Limit("schedule", "a schedule would weigh the squared gradients in B", _OR_PLAIN, MEMORY),
    Limit(
        "spherical",
        "no sphere to step along",
        "true with {beside}",
        TANGENT,
        lambda problem: not problem.spherical,
    ),
    Limit("teacher_start", "no rows of a given overlap", beside=OVERLAP),
    Limit("teacher_block", "no rows of a given overlap", "null, rows with all coordinates, with {beside}", OVERLAP),
    Limit("target", "a task is a committee of its rows of the teacher", beside=TASKS),
    Limit("repeats", "tasks may change between two uses of a batch", beside=TASKS),
    Limit("samples", "labels of a training set are drawn once, for one task", beside=TASKS),
    Limit("data", "tasks are rows of a teacher", beside=TASKS, where=NO_TEACHER.is_of),
    Limit(
        "schedule",
        "no optimal schedule",
        "one that is given, with {beside}",
        TASKS,
        lambda problem: problem.optimal is not None,
    ),
    Limit("k", "the target needs another teacher width", _target_width, where=_has_other_width),
    Limit("sampling", "no training set to sample", "`samples` beside it, the size of the training set", FRESH_SAMPLES),
    Limit(
        "noise_schedule", "labels that never change", "null with {beside}, whose labels are drawn once", TRAINING_SET
    ),
    Limit("outlier_scale", "no outliers", "an `outlier_share` above zero beside it", NO_OUTLIERS),
    Limit(
        "batch_size",
        "a batch larger than the training set",
        "at most {problem.samples}, its `samples`",
        TRAINING_SET,
        lambda problem: problem.batch_size > (problem.samples or 0),
    ),
    Limit("k", "no orthogonal teacher", "at most d = {problem.d}", ORTHOGONAL, lambda problem: problem.k > problem.d),
)
"""The limits of all dynamics."""
