"""Work arrays of kernels: a named tuple whose fields say how its arrays are made, and the function that makes them.

    class Chunk(NamedTuple):
        E: Array = array("np.empty(size)")
        risk: Array = array("np.empty(1)")

    new_chunk = _allocating(allocator(Chunk, "size"))    # in kernels, `new_chunk(size)`

The order of the fields, their types and their shapes are then said once. numba has no tuple of a number of arrays that
it does not know, so the function is made as a text; compiling it takes what it takes by hand.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any


def array(expression: str) -> Any:
    """Return what stands in a named tuple for an array that is made by this expression."""
    return expression


def allocator(kind: Any, arguments: str) -> Callable[..., Any]:
    """Return a plain function of these arguments that returns a tuple of this kind, for the compiler.

    The expressions of the fields may use the arguments, and the names of the module. The file of the function is that
    of the module: machine code in the cache is used only while this is unchanged.
    """
    arrays = ", ".join(kind._field_defaults[field] for field in kind._fields)
    name, module = f"new_{kind.__name__}", sys.modules[kind.__module__]
    source = f"def {name}({arguments}): return {kind.__name__}({arrays})"
    functions: dict[str, Any] = {}
    exec(compile(source, inspect.getfile(kind), "exec"), module.__dict__, functions)
    function: Callable[..., Any] = functions[name]
    function.__module__ = kind.__module__
    return function
