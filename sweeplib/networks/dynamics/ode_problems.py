"""The problems for which the ODE has equations; others are refused."""

from sweeplib.errors import InputError
from sweeplib.networks.dynamics.dynamics import DECAYS, STEPS
from sweeplib.networks.kernels.loss_drifts import MOST_FIELDS
from sweeplib.networks.problem import DEFAULTS, LOSSES, UPDATES, Problem


def refuse_widths(problem: Problem) -> None:
    """Raise InputError for a loss or a step without closed form of more than `MOST_FIELDS` fields."""
    fields, criterion = problem.p + problem.k, problem.criterion
    if fields > MOST_FIELDS and not problem.has_closed_drifts:
        closed = ", ".join(name for name in LOSSES if LOSSES[name].drifts is not None)
        expected = f"p + k of at most {MOST_FIELDS}; or one of {closed} with real labels; or sgd, sgd_chain"
        problem_of = f"{problem.labels} labels and the loss {problem.loss} have drifts by nodes over p + k fields"
        if criterion.is_closed:
            expected = f"p + k of at most {MOST_FIELDS}; or another update; or sgd, sgd_chain"
            problem_of = f"the update {problem.update} has drifts by nodes over p + k fields"
        raise InputError(problem_of, key="p", value=fields, expected=expected)


def refuse_at_finite_d(problem: Problem) -> None:
    """Raise InputError for a schedule, another loss, step or noise, and more teacher rows than dimensions."""
    if problem.has_spectrum:
        expected = f"{DEFAULTS['data']} with finite_d; or `finite_d: false`"
        raise InputError("no equations at finite d", key="data", value=problem.data, expected=expected)
    if problem.rates is not None:
        expected = "a constant rate with finite_d; or `finite_d: false`"
        raise InputError("no equations at finite d", key="schedule", value=problem.schedule, expected=expected)
    for name in sorted((STEPS - DECAYS) | {"tasks"}):
        if getattr(problem, name) != DEFAULTS[name]:
            expected = f"{DEFAULTS[name]} with finite_d; or `finite_d: false`"
            raise InputError("no equations at finite d", key=name, value=getattr(problem, name), expected=expected)
    if problem.k > problem.d:
        expected = f"at most d = {problem.d}, as finite_d needs independent teacher rows; or `finite_d: false`"
        raise InputError("no equations at finite d", key="k", value=problem.k, expected=expected)


def refuse_noisy_inputs(problem: Problem) -> None:
    """Raise InputError for noise of inputs with a target that is no committee, of which there are no drifts."""
    if problem.input_noise > 0.0 and problem.target != DEFAULTS["target"]:
        expected = f"{DEFAULTS['target']} with an input_noise; or sgd, sgd_chain"
        raise InputError("no drifts with noise of inputs", key="target", value=problem.target, expected=expected)


def refuse_steps(problem: Problem) -> None:
    """Raise InputError for a step other than the plain one without drifts."""
    step = UPDATES[problem.update]
    if step.is_plain:
        return
    if problem.has_spectrum:
        expected = f"plain with inputs of {problem.data} (sgd has no such bound)"
        raise InputError("no drifts of this update", key="update", value=problem.update, expected=expected)
    if step.factor is not None and step.memory is None and (step.loss is None or not problem.criterion.is_plain):
        with_means = ", ".join(name for name in UPDATES if UPDATES[name].loss is not None)
        expected = f"plain; or one of {with_means} with the square loss and real labels; or sgd, sgd_chain"
        raise InputError("no drifts of this update and loss", key="update", value=problem.update, expected=expected)
    if step.factor is not None and problem.batch_size > 1:
        expected = f"1 with the update {problem.update} in ode (sgd has no such bound)"
        raise InputError("no drifts of batches", key="batch_size", value=problem.batch_size, expected=expected)
