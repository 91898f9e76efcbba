"""The type checks of tests: beartype's, which accepts an int for a float, as static checkers do (PEP 484).

jaxtyping decides which functions are checked. Annotations with names that do not exist at run time, which beartype
refuses, are not checked; jaxtyping would leave them out too, and check all others twice.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any, ForwardRef, get_args, get_type_hints

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

MOST = 3
"""How often a function within another one is checked anew: to make its checks takes longer than most calls."""
_made = Counter[CodeType]()


def jaxtyped(thing: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    """Return a function, or the constructor of a dataclass, with type checks; it replaces `jaxtyping.jaxtyped`."""
    if thing is None:
        return partial(jaxtyped, typechecker=typechecker)
    if isinstance(thing, type):
        if dataclasses.is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = jaxtyped(thing.__init__, typechecker=typechecker)
        return thing
    if "<locals>" in thing.__qualname__:
        _made[thing.__code__] += 1
        if _made[thing.__code__] > MOST:
            return thing
    written = getattr(thing, "__annotations__", {})
    if not any(map(_has_names, written.values())):
        return typechecker(thing)
    thing.__annotations__ = {name: _resolved(annotation, thing.__globals__) for name, annotation in written.items()}
    function = typechecker(thing)
    thing.__annotations__ = function.__annotations__ = written
    return function


def _has_names(annotation: Any) -> bool:
    return isinstance(annotation, str | ForwardRef) or any(map(_has_names, get_args(annotation)))


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    """Return the annotation with the things for their names; Any if one does not exist."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, include_extras=True)["it"]
    except NameError:
        return Any
