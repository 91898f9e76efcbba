"""Activations by name: a registered one, or a form with numbers such as `hermite(0, 1, 0.5)`."""

import math
from collections.abc import Callable, Iterable
from functools import cache

from sweeplib.engine.base.registry import Registry
from sweeplib.errors import InputError, UnknownNameError
from sweeplib.networks.maths.activations.activation import ACTIVATIONS, Activation

FORMS: Registry[Callable[[tuple[float, ...]], Activation]] = Registry("form of activations")
"""What makes an activation of the numbers in its name; it raises InputError for numbers that make none."""

PATTERNS: dict[str, str] = {}
"""How the names of a form are written, for forms whose numbers are not coefficients c0, c1, ..."""


def activation(name: str) -> Activation:
    """The activation of that name; names of a form that differ in spelling only give the same object.

    Raises UnknownNameError, with the nearest name, where there is none, and InputError for numbers that make none.
    """
    return ACTIVATIONS[name] if name in ACTIVATIONS else _of_form(name)


def canonical_name(name: str) -> str:
    """The one spelling of an activation's name: as registered, or as its form writes its numbers."""
    return name if name in ACTIVATIONS else activation(name).name


def spelled(form: str, numbers: Iterable[float]) -> str:
    """The name of a form's activation, numbers by their shortest round-trip decimals: `hermite(0, 0.5)`."""
    return f"{form}({', '.join(repr(float(number)).removesuffix('.0') for number in numbers)})"


def _pattern(form: str) -> str:
    """How the names of the activations of a form are written, for messages."""
    return PATTERNS.get(form, f"{form}(c0, c1, ...)")


@cache
def _of_form(name: str) -> Activation:
    """The activation of a form, by its name as `form(numbers)`.

    Names that are spelled otherwise give the same object.
    """
    form, _, arguments = (text.strip() for text in name.partition("("))
    if form not in FORMS:
        raise UnknownNameError("unknown activation", value=name, choices=(*ACTIVATIONS, *map(_pattern, FORMS)))
    numbers = _numbers(arguments.removesuffix(")")) if arguments.endswith(")") else ()
    if not numbers:
        raise InputError("not an activation", value=name, expected=f"{_pattern(form)} with finite numbers")
    sigma = FORMS[form](numbers)
    return sigma if sigma.name == name else _of_form(sigma.name)


def _numbers(text: str) -> tuple[float, ...]:
    """The numbers between commas, zero without a sign; none at all where one is unreadable or not finite."""
    try:
        numbers = tuple(float(number) + 0.0 for number in text.split(","))
    except ValueError:
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()
