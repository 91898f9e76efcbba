"""What every activation keeps.

Public functions of `name`, the registered name of an activation, are checks: each raises BrokenError with what is
wrong, and its own name is the sentence that it checks.
"""

import math

import numpy as np

from sweeplib.contracts.check import BrokenError, require, require_equal
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.maths.hermite import information_exponent
from sweeplib.networks.numerics.compiled import specialised

STEP = 1e-5
"""The step of differences."""
FIELDS = np.arange(-3.95, 4.0, 0.3)
"""The fields at which activations are compared, away from halves of integers, where they may have a kink."""


def it_is_finite_at_fields_of_all_sizes(name: str) -> None:
    """Check value and derivative, called as plain Python."""
    form = activation(name)
    for function, words in ((form.value, "value"), (form.derivative, "derivative")):
        for field in (0.0, *FIELDS, -40.0, 40.0):
            result = function(float(field))
            require(math.isfinite(result), f"the {words} at {field:g} is {result}")


def derivative_is_the_slope(name: str) -> None:
    """Check the derivative by central differences of the value."""
    form = activation(name)
    for field in FIELDS:
        slope = (form.value(field + STEP) - form.value(field - STEP)) / (2 * STEP)
        require_equal(form.derivative(field), slope, f"the derivative at {field:.2f}", rtol=1e-7, atol=1e-8)


def information_exponent_is_that_of_the_hermite_coefficients(name: str) -> None:
    """Check that it is the order of the first coefficient that is not zero, beyond the constant."""
    form = activation(name)
    result = information_exponent(form)
    problem = f"information_exponent is {form.information_exponent}; the Hermite coefficients have {result}"
    require(result == form.information_exponent, problem)


def its_form_is_its_value(name: str) -> None:
    """Check that `hermite`, `error_functions` and `hinges`, if given, have the value: closed forms are made of them."""
    form = activation(name)
    for declared, values in _forms(name).items():
        for field, result in zip(FIELDS, values, strict=True):
            require_equal(result, form.value(field), f"`{declared}` at {field:.2f}", rtol=1e-7, atol=1e-8)


def _forms(name: str) -> dict[str, np.ndarray]:
    """Return the values at FIELDS of each form that an activation declares."""
    form, result = activation(name), {}
    if form.hermite is not None:
        scaled = [c / math.sqrt(math.factorial(n)) for n, c in enumerate(form.hermite)]
        result["hermite"] = np.polynomial.hermite_e.hermeval(FIELDS, scaled)
    if form.error_functions is not None:
        offset, terms = form.error_functions
        sums = [sum(w * math.erf(s * z / math.sqrt(2.0)) for w, s in terms) for z in FIELDS]
        result["error_functions"] = offset + np.array(sums)
    if form.hinges is not None:
        offset, hinges = form.hinges
        result["hinges"] = offset + sum((jump * np.maximum(FIELDS - knot, 0.0) for knot, jump in hinges), 0.0 * FIELDS)
    return result


def compiled_and_plain_agree(name: str) -> None:
    """Check value and derivative as numba compiles them."""
    form = activation(name)
    for function, words in ((form.value, "value"), (form.derivative, "derivative")):
        try:
            compiled = specialised(function)
            result = [compiled(z) for z in (-1.7, 0.0, 0.4)]
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise BrokenError(f"numba does not compile the {words}: {' '.join(lines[:3])}") from error
        expected = [function(z) for z in (-1.7, 0.0, 0.4)]
        require_equal(result, expected, f"the compiled {words}", rtol=1e-6, atol=1e-12)


def it_has_expectations_with_itself(name: str) -> None:
    """Check that its expectations, by a closed form or by quadrature, are those with itself."""
    result = expectations(name).name
    require(result == f"{name}|{name}", f"its expectations are those of {result}")
