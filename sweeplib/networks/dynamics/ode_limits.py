"""The problems for which the ODE has equations: its limits, and those at finite d.

Drifts without a closed form are sums over nodes of all p + k fields, which are known for at most `MOST_FIELDS` fields.
The last text of a `Limit` is what is expected instead, in the words of an error.
"""

from sweeplib.networks.dynamics.dynamics import DECAYS, STEPS
from sweeplib.networks.kernels.loss_drifts import MOST_FIELDS
from sweeplib.networks.problem import AVERAGES as AVERAGE_PARAMETERS
from sweeplib.networks.problem import LOSSES, UPDATES, Feature, Limit, Problem
from sweeplib.networks.problem.combinations import (
    AVERAGES,
    DROPOUT,
    INPUT_NOISE,
    MEMORY,
    REPLAY,
    RESCALED,
    SIGNS,
    SPECTRUM,
)

# parts of messages, and the features of problems whose drifts are sums over nodes
_FEW = f"p + k of at most {MOST_FIELDS}"
_LOSS_BY_NODES = Feature(
    "{problem.labels} labels and the loss {problem.loss} have",
    lambda problem: _has_many(problem) and not problem.criterion.is_closed,
    "another loss without drifts in closed form",
)
_UPDATE_BY_NODES = Feature(
    "the update {problem.update} has",
    lambda problem: _has_many(problem) and UPDATES[problem.update].loss is not None,
    "normalised or clipped steps",
)
_RIDGE = Feature(
    "the update {problem.update}",
    lambda problem: "spectral_ridge" in problem.differing_names,
    "a spectral_ridge",
)
_BY_NODES = "{beside} drifts by nodes over p + k fields"


def closed_losses() -> str:
    """Return the names of the losses with drifts in closed form."""
    return ", ".join(name for name in LOSSES if LOSSES[name].drifts is not None)


def _updates_with_means(_: Problem) -> str:
    """The updates whose drifts the ODE has, in words for an error."""
    names = ", ".join(name for name in UPDATES if UPDATES[name].loss is not None)
    return f"plain; or one of {names} with the square loss and real labels; or sgd, sgd_chain"


def _has_no_means(problem: Problem) -> bool:
    """Whether the drifts of the problem's update are unknown: it has neither a memory nor means with this loss."""
    step = UPDATES[problem.update]
    return step.memory is None and (step.loss is None or not problem.criterion.is_plain)


def _fields(problem: Problem) -> int:
    """The number of fields of student and teacher, which errors show as the value."""
    return problem.p + problem.k


def _has_many(problem: Problem) -> bool:
    """Whether there are too many fields for drifts by nodes."""
    return _fields(problem) > MOST_FIELDS


def _has_early_average(problem: Problem) -> bool:
    """Whether an average weighs early steps more than late ones: then its equations are singular at the start."""
    return 0.0 < problem.averaging_order < 1.0


def _has_many_with_averages(problem: Problem) -> bool:
    """Whether there are too many fields for drifts by nodes when averages add p fields of their own."""
    return not problem.has_closed_drifts and problem.p + _fields(problem) > MOST_FIELDS


def _few_or_closed(_: Problem) -> str:
    """The losses and numbers of fields whose drifts the ODE has, in words for an error."""
    return f"{_FEW}; or one of {closed_losses()} with real labels; or sgd, sgd_chain"


_OR_SGD = "{default} with {beside}; or sgd, sgd_chain"
# spectra need drifts of each block of inputs
OF_DISTURBED = (
    Limit("target", "no drifts with noise of inputs", _OR_SGD, INPUT_NOISE),
    Limit("data", "no drifts with dropout", "{default} with {beside}; or sgd", DROPOUT),
    Limit("data", "no drifts with noise of inputs", "{default} with {beside}; or sgd", INPUT_NOISE),
    Limit("data", "no equations of blocks of inputs with replay", "{default} with {beside}; or sgd", REPLAY),
)
"""The limits of dropout, noise of inputs and replay for all flows of overlaps."""
OF_AVERAGES = (
    Limit("tasks data", "no equations of averages", beside=AVERAGES),
    Limit("averaging_order", "no equations of averages", "0, or 1 or more, in ode", where=_has_early_average),
)
"""The limits of averages for all flows of overlaps."""
_DISTURBED_LOSSES = tuple(
    Limit(keys, reason, _OR_SGD, beside, where)
    for keys, where in (
        ("labels", None),
        ("loss", lambda problem: not problem.criterion.is_closed),
        ("update", lambda problem: UPDATES[problem.update].loss is not None),
    )
    for reason, beside in (("no drifts with dropout", DROPOUT), ("no drifts with noise of inputs", INPUT_NOISE))
)
LIMITS = (
    Limit("update", "no drifts of this update", "{default} with {beside} (sgd has no such bound)", SPECTRUM),
    Limit("update", "no drifts of this update and loss", _updates_with_means, RESCALED, _has_no_means),
    Limit(
        "update",
        "no drifts of a ridge",
        "`spectral_ridge: 0` with {beside} in ode; or sgd, sgd_chain",
        _RIDGE,
        lambda _: True,
    ),
    *OF_AVERAGES,
    Limit(
        "update",
        "no equations of averages",
        beside=AVERAGES,
        where=lambda problem: UPDATES[problem.update].memory is not None,
    ),
    Limit(
        "p",
        "drifts by nodes over 2p + k fields with averages",
        f"2 p + k of at most {MOST_FIELDS} in ode",
        AVERAGES,
        _has_many_with_averages,
    ),
    *(
        Limit("batch_size", "no drifts of batches", "{default} with {beside} in ode (sgd has no such bound)", beside)
        for beside in (RESCALED, SIGNS)
    ),
    Limit("loss labels", "no drifts of signs with this loss", beside=SIGNS),
    Limit("noise_schedule", "no equations of a memory and of the time", _OR_SGD, MEMORY),
    *OF_DISTURBED,
    *_DISTURBED_LOSSES,
    Limit("p", _BY_NODES, _few_or_closed, _LOSS_BY_NODES, value=_fields),
    Limit("p", _BY_NODES, f"{_FEW}; or another update; or sgd, sgd_chain", _UPDATE_BY_NODES, value=_fields),
)
_AT_FINITE_D, _WITH_IT = "no equations at finite d", "with finite_d; or `finite_d: false`"
LIMITS_AT_FINITE_D = (
    Limit(
        "data " + " ".join(sorted((STEPS - DECAYS - {"temperature"}) | {"tasks"} | AVERAGE_PARAMETERS)),
        _AT_FINITE_D,
        f"{{default}} {_WITH_IT}",
    ),
    Limit("schedule", _AT_FINITE_D, f"a constant rate {_WITH_IT}"),
    Limit("k", _AT_FINITE_D, f"at most d = {{problem.d}} {_WITH_IT}", where=lambda problem: problem.k > problem.d),
)
