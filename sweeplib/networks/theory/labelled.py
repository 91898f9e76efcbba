"""Formulas over numbers, arrays and labelled arrays alike."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = float | NDArray[np.float64]
"""What a formula takes and returns: within it, arrays of floats that broadcast."""


def labelled(symbol: str, long_name: str, units: str = "1") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the formula of float arrays it is given, broadcast over numbers, arrays or DataArrays.

    DataArrays are matched by the names of their dimensions; the result then carries the function's name and the
    attributes `symbol` (LaTeX without dollars), `long_name` and `units`. Divisions by zero and the like are silent: a
    formula says itself what it returns outside its domain.
    """

    def decorate(formula: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that evaluates a formula of arrays for numbers, arrays and labelled arrays."""
        signature = inspect.signature(formula)

        @functools.wraps(formula)
        def evaluated(*args: Any, **kwargs: Any) -> Any:
            """Return the values of the formula, of the kind of its arguments."""
            arguments = signature.bind(*args, **kwargs)
            arguments.apply_defaults()
            with np.errstate(all="ignore"):
                if not any(_is_labelled(value) for value in arguments.args):
                    return _float_formula(formula)(*arguments.args)[()]  # a number, if it has no axis
                result = sys.modules["xarray"].apply_ufunc(_float_formula(formula), *arguments.args)
            attributes = {"long_name": long_name, "symbol": symbol, "units": units}
            return result.rename(formula.__name__).assign_attrs(attributes)

        return evaluated

    return decorate


def _float_formula(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula with arguments turned into arrays of floats, and its result into an array."""
    return lambda *values: np.asarray(formula(*(np.asarray(value, dtype=float) for value in values)))


def _is_labelled(value: Any) -> bool:
    """Whether a value is a DataArray."""
    xarray = sys.modules.get("xarray")  # not imported: nobody has a DataArray
    return xarray is not None and isinstance(value, xarray.DataArray)
