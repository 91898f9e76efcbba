"""The part of a source file that can change a number of a result.

It does not include docstrings, comments, layout, annotations, labels and the texts of exceptions; what a class only
declares about its numbers; the bounds and defaults of numerical options and of parameters, whose values are in a
case's identity; and checks that only refuse input, because an InputError comes before any number.

In a file of a user's these names may be anything: the rules hold there for what the file imports from this package and
for classes that have a base from there, and checks count. So do annotations in other classes, which decorators read.
"""

import ast
from collections.abc import Iterator
from typing import Any

from sweeplib.engine.code.syntax import Fields, is_docstring, prefix_notation, syntax_tree
from sweeplib.engine.code.user_code import PACKAGE

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


def numerical_code(text: str, *, of_library: bool) -> tuple[str, list[ast.stmt]]:
    """Return the syntax tree of the code that counts, in prefix notation, and the import statements of the source.

    of_library : whether the source is of this package; else it is a user's.
    """
    reader = _Reader(None if of_library else frozenset(_imported(syntax_tree(text))))
    return prefix_notation(text, reader.fields), reader.imports


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a source imports from this package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE and not node.level:
            yield from (alias.asname or alias.name for alias in node.names)


class _Reader:
    """Reads a source: which fields of its nodes count, and its import statements.

    imported : the names that a user's source imports from this package; None for a source of this package.
    """

    def __init__(self, imported: frozenset[str] | None) -> None:
        self.imports: list[ast.stmt] = []
        self._imported = imported
        self._read: set[ast.AST] = set()  # the assignments whose annotations count

    def _is_ours(self, name: str | None) -> bool:
        """Return whether a name of the source means what it means in this package."""
        return self._imported is None or name in self._imported

    def _refuses(self, raised: ast.expr) -> bool:
        """Return whether what is raised or called only refuses input."""
        return _name_of(raised) in REFUSALS and self._is_ours(_name_of(raised))

    def _is_contract(self, node: ast.AST) -> bool:
        """Return whether a node is a class of which only this package reads what it declares."""
        return isinstance(node, ast.ClassDef) and (
            self._imported is None or any(self._is_ours(_name_of(base)) for base in node.bases)
        )

    def fields(self, node: ast.AST) -> Fields:
        """Return the fields of a node that count, and remember it if it is an import."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
        if isinstance(node, ast.ClassDef) and not self._is_contract(node):
            self._read.update(item for item in node.body if isinstance(item, ast.AnnAssign))
        return self._fields(node)

    def _fields(self, node: ast.AST) -> Iterator[tuple[str, Any]]:
        """Yield the name and the value of each field of a node, without what changes no number."""
        match node:
            case ast.AnnAssign():
                yield from (("targets", [node.target]), ("value", node.value))
                if node in self._read:
                    yield "annotation", node.annotation
            case ast.Raise():
                yield from self._counted_parts_of_raise(node.exc)
            case ast.Assert():
                yield "test", node.test
            case ast.Call(func=raised) if self._refuses(raised):
                yield "func", node.func
            # after a `*` among the arguments nobody knows which one has which position
            case ast.Call(func=ast.Name(id=name)) if (
                name in LABELS and self._is_ours(name) and not any(isinstance(item, ast.Starred) for item in node.args)
            ):
                unseen = LABELS[name]
                keywords = [keyword for keyword in node.keywords if keyword.arg not in unseen]
                arguments = [argument for place, argument in enumerate(node.args) if place not in unseen.values()]
                yield from (("func", node.func), ("args", arguments), ("keywords", keywords))
            case _:
                for name in node._fields:
                    if name not in _UNSEEN:
                        field = getattr(node, name, None)
                        if isinstance(field, list):
                            field = [item for item in field if self._counts(item, node)]
                        yield name, field

    def _counts(self, item: Any, parent: ast.AST) -> bool:
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
            case ast.AnnAssign(target=target, annotation=annotation) if self._is_options(parent):
                return (_name_of(target) or "_").startswith("_") or "ClassVar" in ast.unparse(annotation)
            case ast.AnnAssign(target=target, value=value) | ast.Assign(targets=[target], value=value):
                label = _name_of(target) == "label" and _is_text(value)
                return not (self._is_contract(parent) and (label or _name_of(target) in DECLARED))
            # a check that only refuses input; in a function of a user's it decides whether a case fails
            case ast.If(test=test, body=[*before, ast.Raise(exc=ast.Call(func=raised))], orelse=[]) if (
                self._imported is None
            ):
                only = self._refuses(raised) and all(isinstance(node, ast.Assign | ast.AnnAssign) for node in before)
                # a test with `:=` defines a name that code after it may use
                return not only or any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))
        return True

    def _is_options(self, node: ast.AST) -> bool:
        """Return whether a node is the class of numerical options or of parameters."""
        return isinstance(node, ast.ClassDef) and any(
            _name_of(base) in OPTIONS and self._is_ours(_name_of(base)) for base in node.bases
        )

    def _counted_parts_of_raise(self, error: ast.expr | None) -> Iterator[tuple[str, Any]]:
        """Yield the parts of a raised exception that count: its class, and what handlers may use of it.

        Those are arguments that are no texts, and none of REFUSALS, which tell users what is wrong.
        """
        if isinstance(error, ast.Call) and not self._refuses(error.func):
            yield "exc", error.func
            yield "args", [argument for argument in error.args if not _is_text(argument)]
            yield "keywords", [keyword for keyword in error.keywords if not _is_text(keyword.value)]
        else:
            yield "exc", error.func if isinstance(error, ast.Call) else error


def _is_text(node: ast.expr | None) -> bool:
    """Return whether an expression is a text, with or without values in it."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name_of(node: ast.expr) -> str | None:
    """Return the name that an expression consists of; None for others."""
    return node.id if isinstance(node, ast.Name) else None
