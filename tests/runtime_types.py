"""The type checks of tests: beartype's, which accepts an int for a float, as static checkers do (PEP 484).

jaxtyping decides which functions are checked. Its own wrapper, which compares the shapes of a call's arrays, takes
twenty times as long as the checks: only functions whose annotations have shapes get it, and those with names that do
not exist at run time, which beartype alone refuses.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ForwardRef, get_args

import jaxtyping
from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
_jaxtyped = jaxtyping.jaxtyped


def jaxtyped(thing: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    """Return a function, or the constructor of a dataclass, with type checks; it replaces `jaxtyping.jaxtyped`."""
    if thing is None:
        return partial(jaxtyped, typechecker=typechecker)
    if isinstance(thing, type):
        if dataclasses.is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = jaxtyped(thing.__init__, typechecker=typechecker)
        return thing
    if any(map(_is_for_jaxtyping, getattr(thing, "__annotations__", {}).values())):
        return _jaxtyped(thing, typechecker=typechecker)
    return typechecker(thing)


def _is_for_jaxtyping(annotation: Any) -> bool:
    name = isinstance(annotation, str | ForwardRef)
    shape = type(annotation).__module__.startswith("jaxtyping")
    return name or shape or any(map(_is_for_jaxtyping, get_args(annotation)))
