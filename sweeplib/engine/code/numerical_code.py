"""The part of a source file that can change a number of a result.

It does not include docstrings, comments, layout, annotations, labels and the texts of exceptions; what a class only
declares about its numbers; the bounds and defaults of numerical options and of parameters, whose values are in a
case's identity; and checks that only refuse input, because an InputError comes before any number.
"""

import ast
from collections.abc import Iterator
from typing import Any

from sweeplib.engine.code.syntax import Fields, is_docstring, prefix_notation

BY_VALUE = frozenset(
    {
        "sweeplib.engine.cases",
        "sweeplib.engine.parameters",
        "sweeplib.engine.records",
        "sweeplib.engine.seeds",
        "sweeplib.engine.simulator",
        "sweeplib.engine.status",
        "sweeplib.engine.variable",
        "sweeplib.errors",
        "sweeplib.networks.maths.activations.named",
        "sweeplib.networks.dynamics.ode_limits",
        "sweeplib.networks.problem",
        "sweeplib.networks.problem.columns",
        "sweeplib.networks.problem.combinations",
        "sweeplib.networks.problem.limits",
        "sweeplib.networks.problem.base_parameters",
        "sweeplib.networks.problem.problem",
        "sweeplib.networks.problem.parameters",
        "sweeplib.networks.problem.parts",
        "sweeplib.engine.base.registry",
        "sweeplib.networks.simulation.cases",
        "sweeplib.networks.simulation.columns",
        "sweeplib.networks.simulation.labels",
        "sweeplib.networks.simulation.optima",
        "sweeplib.networks.simulation.recording",
        "sweeplib.networks.simulation.variables",
        "sweeplib.engine.base.validation",
    }
)
"""Modules that do not count at all: everything a run takes from them is in its identity, as values."""

LABELS: dict[str, dict[str, int]] = {
    "Activation": {"label": 1},
    "Observable": {"long_name": 3, "symbol": 4, "units": 5},
}
"""The arguments (with their positions) of these classes that are only labels for a reader."""

REFUSALS = frozenset({"InputError", "UnknownNameError", "Limit"})
"""Exceptions that refuse input, and what raises them."""

DECLARED = frozenset({"cost_seconds", "counts_steps", "law_of", "limits", "unaffected_by", "undefined"})
"""Attributes of classes that say something about the numbers or their cost, and do not enter them."""

OPTIONS = frozenset({"NumericalOptions", "Parameters"})
"""The base classes of numerical options, and of parameters."""

_UNSEEN = frozenset({"annotation", "returns", "ctx", "simple", "kind", "type_comment", "type_ignores", "type_params"})
"""The fields of nodes that never count."""


def numerical_code(text: str) -> tuple[str, list[ast.stmt]]:
    """Return the syntax tree of the code that counts, in prefix notation, and the import statements of the source."""
    imports: list[ast.stmt] = []

    def fields(node: ast.AST) -> Fields:
        """Return the fields of a node that count, and remember it if it is an import."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        return _fields(node)

    return prefix_notation(text, fields), imports


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each field of a node, without what changes no number."""
    match node:
        case ast.AnnAssign():
            yield from (("targets", [node.target]), ("value", node.value))
        case ast.Raise():
            yield from _counted_parts_of_raise(node.exc)
        case ast.Assert():
            yield "test", node.test
        case ast.Call(func=ast.Name(id=name)) if name in REFUSALS:
            yield "func", node.func
        # after a `*` among the arguments nobody knows which one has which position
        case ast.Call(func=ast.Name(id=name)) if name in LABELS and not any(map(_is_starred, node.args)):
            unseen = LABELS[name]
            keywords = [keyword for keyword in node.keywords if keyword.arg not in unseen]
            arguments = [argument for place, argument in enumerate(node.args) if place not in unseen.values()]
            yield from (("func", node.func), ("args", arguments), ("keywords", keywords))
        case _:
            for name in node._fields:
                if name not in _UNSEEN:
                    field = getattr(node, name, None)
                    yield name, [item for item in field if _counts(item, node)] if isinstance(field, list) else field


def _counts(item: Any, parent: ast.AST) -> bool:
    """Return whether an item of a list of nodes can change a number: any item but some statements, by their kind.

    parent : the node that has the list.
    """
    match item:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return False
        case ast.Expr():
            return not is_docstring(item)
        case ast.ImportFrom(module=module):
            return module not in BY_VALUE
        case ast.AnnAssign(target=target, annotation=annotation) if _is_options(parent):
            return (_name_of(target) or "_").startswith("_") or "ClassVar" in ast.unparse(annotation)
        case ast.AnnAssign(target=target, value=value) | ast.Assign(targets=[target], value=value):
            label = _name_of(target) == "label" and _is_text(value)
            return not (isinstance(parent, ast.ClassDef) and (label or _name_of(target) in DECLARED))
        # a check that only refuses input
        case ast.If(test=test, body=[*before, ast.Raise(exc=ast.Call(func=raised))], orelse=[]):
            only = _name_of(raised) in REFUSALS and all(isinstance(node, ast.Assign | ast.AnnAssign) for node in before)
            # a test with `:=` defines a name that code after it may use
            return not only or any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))
    return True


def _counted_parts_of_raise(error: ast.expr | None) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a raised exception that count: its class, and what handlers may use of it.

    Those are arguments that are no texts, and none of REFUSALS, which tell users what is wrong.
    """
    if isinstance(error, ast.Call) and _name_of(error.func) not in REFUSALS:
        yield "exc", error.func
        yield "args", [argument for argument in error.args if not _is_text(argument)]
        yield "keywords", [keyword for keyword in error.keywords if not _is_text(keyword.value)]
    else:
        yield "exc", error.func if isinstance(error, ast.Call) else error


def _is_options(node: ast.AST) -> bool:
    """Return whether a node is the class of numerical options or of parameters."""
    return isinstance(node, ast.ClassDef) and any(_name_of(base) in OPTIONS for base in node.bases)


def _is_starred(node: ast.expr) -> bool:
    """Return whether an argument is `*arguments`."""
    return isinstance(node, ast.Starred)


def _is_text(node: ast.expr | None) -> bool:
    """Return whether an expression is a text, with or without values in it."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name_of(node: ast.expr) -> str | None:
    """Return the name that an expression consists of; None for others."""
    return node.id if isinstance(node, ast.Name) else None
