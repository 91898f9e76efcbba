"""The results of functions and programs: what is declared of them, and whether what a call returns is that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.functions.function import Function


SHOWN = 60
"""The characters of a text, in place of a number, that an error shows."""
LENGTH = "a whole number from 0 on"
"""What the length of a dimension must be, in words."""


@dataclass(frozen=True)
class Result:
    """A result of a function: real numbers in some units; an array names its dimensions and their lengths.

    dims : lengths by the names of dimensions; a length is a whole number, the name of a parameter that has it, or
        `times`, the number of recording times, of the dimension `time`.
    """

    units: str = "1"
    dims: Mapping[str, int | str] = field(default_factory=dict)
    label: str = ""
    symbol: str = ""

    def __post_init__(self) -> None:
        """Refuse lengths that are none."""
        for dim, size in self.dims.items():
            if not isinstance(size, str) and (type(size) is not int or size < 0):
                expected = f"{LENGTH}, or the name of a parameter"
                raise InputError(f"not the length of {dim}", value=size, expected=expected)

    def shape(self, values: Mapping[str, Any], along: str | None = None) -> tuple[int, ...]:
        """Return the shape of the result where the parameters, and `times`, have some values.

        along : a dimension that is left out, of results at one place along it.
        """
        sizes = [size for dim, size in self.dims.items() if dim != along]
        return tuple(int(values[size]) if isinstance(size, str) else size for size in sizes)


def declared_results(of: str, results: Mapping[str, Any]) -> dict[str, Result]:
    """Return the results of a function or program, of which units alone may be declared; InputError for what is none.

    Units may be 1, the number, where there are none.
    """
    for name, entry in results.items():
        if not isinstance(entry, str | Result) and (type(entry), entry) != (int, 1):
            raise InputError(f"{of}: not the units of {name}", value=entry, expected='a text, such as "J", or a Result')
    return {name: entry if isinstance(entry, Result) else Result(str(entry)) for name, entry in results.items()}


def checked_results(
    function: Function, returned: Any, values: Mapping[str, Any], along: str | None = None
) -> dict[str, np.ndarray]:
    """Return what a function returned as arrays by name; TypeError or ValueError unless it is what was declared.

    values : of the parameters, and of `times`, on which lengths depend. along : a dimension that the arrays lack, as
    results at one place along it.
    """
    if not isinstance(returned, Mapping):
        if len(function.results) != 1:
            wanted = ", ".join(function.results)
            raise TypeError(f"{function.name} returned {type(returned).__name__}; expected a dict with {wanted}")
        returned = {next(iter(function.results)): returned}
    if unknown := sorted(map(str, returned.keys() ^ function.results.keys())):
        raise ValueError(
            f"{function.name} returned {', '.join(map(str, returned))}; its results differ in {unknown[0]}"
        )
    arrays = {}
    for name, result in function.results.items():
        value, shape = returned[name], result.shape(values, along)
        # a masked number is none
        array = np.ma.filled(value.astype(float), np.nan) if np.ma.isMaskedArray(value) else np.asarray(value)
        if type(value) is int:  # NumPy has no numbers for those of more than 64 bits
            array = np.asarray(float(value))
        if array.dtype.kind not in "biuf" or array.shape != shape:
            is_text = array.dtype.kind in "SU"
            kind = f"the text {str(value)[:SHOWN]!r}" if is_text else f"{array.dtype} of shape {array.shape}"
            raise TypeError(f"{function.name} returned {name} as {kind}; expected real numbers of shape {shape}")
        arrays[name] = array.astype(float)
    return arrays
