"""Targets by name: a registered one, or a formula of the teacher's fields such as `lam1 + lam1*lam2 + he3(lam3)`.

A registered target with parameters is called with their values, such as `bent(c=0.5)`. The tree of a formula is a
`Formula`; its `source` is text of Python, with a variable for each activation.
"""

import ast
import math
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError, UnknownNameError
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.formulas import Formula, formula, is_constant, ridges
from sweeplib.networks.maths.formulas.formula import Applied
from sweeplib.networks.maths.formulas.ridges import Ridge
from sweeplib.networks.problem.parameters import Parameters
from sweeplib.networks.problem.targets.target import TARGETS, Target

if TYPE_CHECKING:
    from sweeplib.networks.maths.expectations import Expectations
    from sweeplib.networks.problem.problem import Problem

POLYNOMIALS = "he1"
"""An activation that stands for the module of Hermite series, on whose code the polynomials of formulas depend."""

EXAMPLE = "lam1*lam2"
"""A formula, to be shown among the choices of an error message."""


def target(name: str) -> Target:
    """The target of that name; formulas that differ in spacing or parentheses only give the same object.

    Raises UnknownNameError for an unknown word, and InputError with the position for what is no formula.
    """
    if name in TARGETS:
        return TARGETS[name]
    registered = registered_target(name)
    return _target_of(name) if registered is None else _target_with_numbers(TARGETS[registered], name)


def registered_target(name: str) -> str | None:
    """Return the registered target that a name is of, such as `bent` for `bent(c=0.5)`; None for a formula."""
    word = name.partition("(")[0]
    return word if word == name in TARGETS or (word in TARGETS and "=" in name) else None


def ridges_of(name: str) -> tuple[Ridge, ...]:
    """The functions of one field whose sum is the target of that name; none for one that is not known as a sum."""
    return () if registered_target(name) else ridges(formula(name)) or ()


def with_numbers(name: str, problem: "Problem") -> str:
    """The name of a target with the values of its parameters in a problem, such as `bent(c=0.5)`: `target` takes it."""
    names = TARGETS[name].parameter_names if name in TARGETS else ()
    return f"{name}({', '.join(f'{key}={getattr(problem, key)!r}' for key in names)})" if names else name


@cache
def _target_with_numbers(plain: Target, text: str) -> Target:
    """The target `plain` with the values of its parameters that stand in a text such as `bent(c=0.5)`.

    Its functions get the values; it has no parameters left. Kernels need one object for equal arguments of `labels`.
    """
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    functions: dict[str, Any] = {
        name: partial(getattr(plain, name), **values) for name in ("expectations", "exponents")
    }
    return replace(plain, name=text, labels=cache(partial(plain.labels, **values)), parameters=Parameters, **functions)


def canonical_target(name: str) -> str:
    """Return the one spelling of a target's name; InputError for a name with values of its parameters in it."""
    registered = registered_target(name)
    if registered not in (None, name):
        names = TARGETS[registered].parameter_names
        expected = registered + (f", and {' and '.join(names)} beside `target`" if names else "")
        raise InputError("no values stand in the name of a target", value=name, expected=expected)
    return target(name).name


@cache
def _target_of(text: str) -> Target:
    """Return the target of a formula; InputError for one that is constant, infinite, or no formula."""
    # a word that is no field is the name of a target, spelled wrongly
    if text.strip().isidentifier() and not text.strip().removeprefix("lam").isdigit():
        raise UnknownNameError("unknown target", value=text, choices=(*TARGETS, EXAMPLE))
    tree = formula(text)
    if is_constant(tree):
        raise InputError("a constant is no target", value=text, expected="a formula of the fields lam1, lam2, ...")
    if not math.isfinite(_moderate_value(tree)):
        raise InputError("not a target: too large", value=text, expected="a formula whose values are finite numbers")
    return _formula_target(tree)


def _moderate_value(tree: Formula) -> float:
    """Return the value of a formula where all fields are 3; inf or NaN if it is too large for a number."""
    calls: dict[str, str] = {}
    source = tree.source(calls)
    space: dict[str, Any] = {f"lam{index + 1}": 3.0 for index in range(tree.width)}
    space |= {variable: activation(name).value for name, variable in calls.items()}
    try:
        return float(eval(compile(source, __file__, "eval"), space))
    except OverflowError:
        return math.inf


@cache
def _formula_target(tree: Formula) -> Target:
    """Return the target of a formula: its labels, expectations and exponents follow from the tree."""
    return Target(
        str(tree),
        tree.written(latex=True),
        partial(_labels, tree),
        partial(_expectations, tree),
        k=tree.width,
        exponents=partial(_exponents, tree),
        activations=tuple(sorted({node.name for node in tree.walk() if isinstance(node, Applied)} | {POLYNOMIALS})),
    )


def _exponents(tree: Formula) -> tuple[int | None, int | None]:
    """Return the information exponent and the leap exponent of a formula, None for one that is not known."""
    from sweeplib.networks.maths.formulas.exponents import information_exponent, leap_exponent

    return information_exponent(tree), leap_exponent(tree)


@cache
def _labels(tree: Formula, teacher_activation: str) -> Any:
    """The function `fill` (`Target.labels`) of the formula; the teacher's activation is not used.

    Its source is made of names of fields, numbers and calls of activations alone: nothing else is executed.
    """
    from sweeplib.networks.numerics.compiled import in_loops

    calls: dict[str, str] = {}
    source = tree.source(calls)
    fields = [f"        lam{index + 1} = lam_star[{index}, n]" for index in range(tree.width)]
    # the name `text` puts the formula into the digest of the machine code: numbers in a body are not in it
    lines = ["def fill(lam_star, a_star, out):", "    text", "    for n in range(out.shape[0]):", *fields]
    space: dict[str, Any] = {"__name__": __name__, "text": source}
    space |= {variable: in_loops(activation(name).value) for name, variable in calls.items()}
    exec(compile("\n".join([*lines, f"        out[n] = {source}"]), __file__, "exec"), space)
    return space["fill"]


def _expectations(tree: Formula, student: str, teacher_activation: str) -> "Expectations":
    """The expectations for a student with this activation; the teacher's activation is not used."""
    from sweeplib.networks.maths.expectations import given_teacher
    from sweeplib.networks.maths.expectations.ridge_sums import of_formula

    if (expectations := of_formula(student, tree)) is not None:
        return expectations
    if tree.width > given_teacher.MOST_FIELDS:
        expected = f"at most {given_teacher.MOST_FIELDS} fields in it, or a sum of ridge functions"
        raise InputError("no expectations for this target", key="target", value=str(tree), expected=expected)
    return _given_teacher(student, tree)


@cache
def _given_teacher(student: str, tree: Formula) -> "Expectations":
    """Return the expectations of a formula for a student by quadrature over the teacher's fields; made once."""
    from sweeplib.networks.maths.expectations.given_teacher import of_labels
    from sweeplib.networks.maths.formulas.exponents import knots

    return of_labels(f"{student}|{tree}", activation(student), _labels(tree, student), knots(tree))
