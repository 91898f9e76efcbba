"""Functions from templates, by binding global names to constants, tables or other functions."""

import types
from collections.abc import Callable
from typing import Any


def bound(template: Callable[..., Any], **bindings: Any) -> types.FunctionType:
    """A copy of the plain Python function `template` with these global names bound to the given values.

    Numbers and tuples of numbers are constants to the compiler; functions must be compiled ones where the copy is to be
    compiled (`compiled.inlined`).
    """
    names = {**template.__globals__, **bindings}
    copy = types.FunctionType(template.__code__, names, template.__name__, template.__defaults__, template.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = template.__module__, template.__qualname__, template.__doc__
    return copy


def unbound(*arguments: Any) -> Any:
    """Stand in a template for a function that `bound` puts in its place; a template that is called says so."""
    raise NotImplementedError("a template is called in which a function was not bound")
