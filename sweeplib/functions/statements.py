"""What statements at the top level of a file do with its names, and which of them the value of a name depends on."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

_FORM_ALONE = frozenset(
    {"cache", "dataclass", "guvectorize", "jit", "lru_cache", "njit", "simulator", "total_ordering", "vectorize"}
)
"""Decorators that give what they decorate another form. Others may enter it into a table, which functions read."""
_INERT = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Dict, ast.FormattedValue, ast.IfExp),
    *(ast.JoinedStr, ast.Lambda, ast.List, ast.Name, ast.Set, ast.Tuple, ast.UnaryOp),
)
"""The expressions that change nothing where they are evaluated."""
_CHANGING = frozenset({"pop", "popitem", "popleft", "setdefault"})
"""Methods of Python's containers that change them and may give something."""
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Statement:
    """A statement at the top level, with the names of the file that it uses.

    only_defines : whether it does nothing but define names, so that it matters only to who reads these.
    bound, certain : the names that it may define or delete, and those of them that it does whatever happens.
    changed : the names whose values it changes in place: by an assignment to a part, by a method, or by a decorator,
        which may enter what it decorates into a table.
    read, read_later : the names whose values it needs, and those that functions in it need when they are called.
    """

    node: ast.stmt
    only_defines: bool
    bound: frozenset[str]
    certain: frozenset[str]
    changed: frozenset[str]
    read: frozenset[str]
    read_later: frozenset[str]

    @property
    def is_import(self) -> bool:
        """Whether it is an import."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def is_star(self) -> bool:
        """Whether it is `from ... import *`, which may define any name."""
        return isinstance(self.node, ast.ImportFrom) and self.node.names[0].name == "*"


def statements_of(body: Iterable[ast.stmt]) -> list[Statement]:
    """Return statements with their names, without those that repeat an earlier one, as of a cell that runs again."""
    statements = _with_shared_changes(list(map(_statement, body)))
    texts = [ast.dump(statement.node) for statement in statements]
    return [
        statement
        for place, statement in enumerate(statements)
        if texts[place] not in texts[:place]
        or not _is_fixed(statement)
        or any(
            texts[place] != text and not _are_modules(statement, other) and statement.bound & other.bound
            for text, other in zip(texts, statements, strict=True)
        )
    ]


def _with_shared_changes(statements: list[Statement]) -> list[Statement]:
    """Return statements that change, too, what their decorators, bases and instances change, and what a package has.

    `jax.config.update("jax_enable_x64", True)` changes what `import jax.numpy as jnp` and `from jax import grad` give.
    """
    of_packages: dict[str, set[str]] = {}
    in_functions: dict[str, set[str]] = {}
    classes = {statement.node.name for statement in statements if isinstance(statement.node, ast.ClassDef)}
    for statement in statements:
        for package, name in imports_in(statement.node):
            of_packages.setdefault(package, set()).add(name)
        if isinstance(statement.node, _FUNCTION | ast.ClassDef):
            bases = _base_roots(statement.node) & in_functions.keys()
            inherited = bases.union(*(in_functions[base] for base in bases))
            changed_here = changed_in(statement.node, inside=True) | inherited
            in_functions.setdefault(statement.node.name, set()).update(changed_here)

    def changed(statement: Statement) -> frozenset[str]:
        """Return all names whose values a statement changes."""
        roots = _decorator_roots(statement.node) | (_base_roots(statement.node) & in_functions.keys())
        made = {root for root, _ in called_in(statement.node)} & classes
        names = statement.changed.union(roots, *(in_functions.get(root, ()) for root in roots | made))
        return names.union(*(shared for shared in of_packages.values() if names & shared))

    return [replace(statement, changed=changed(statement)) for statement in statements]


def imports_in(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the package of each import of a statement, and the name that it has here."""
    match node:
        case ast.Import(names=entries):
            for entry in entries:
                package = entry.name.partition(".")[0]
                yield package, entry.asname or package
        case ast.ImportFrom(module=str() as module, level=0, names=entries):
            for entry in entries:
                yield module.partition(".")[0], entry.asname or entry.name


def _decorator_roots(node: ast.stmt) -> set[str]:
    """Return the names with which the decorators of a statement begin, but for those that only give another form."""
    decorators = node.decorator_list if isinstance(node, _FUNCTION | ast.ClassDef) else []
    return set().union(*(_root(entry) for entry in decorators if last_name(entry) not in _FORM_ALONE))


def _base_roots(node: ast.stmt) -> set[str]:
    """Return the names with which the bases of a class begin, and its metaclass: they may enter it into a table."""
    bases = [*node.bases, *(entry.value for entry in node.keywords)] if isinstance(node, ast.ClassDef) else []
    return set().union(*map(_root, bases))


def needed_by(name: str, statements: list[Statement], always: Collection[ast.stmt]) -> list[Statement]:
    """Return the statements on which the value of a name depends, and what it gives where it is called, in order.

    always : the statements that are among them whoever reads their names.
    """
    while True:
        fewer = _without_unread(name, statements, always)
        # a definition that is replaced later is gone now, and what it alone reads goes next
        if len(fewer) == len(statements):
            return fewer
        statements = fewer


def _without_unread(name: str, statements: list[Statement], always: Collection[ast.stmt]) -> list[Statement]:
    """Return the statements but those whose names nobody reads; the arguments are those of `needed_by`."""
    # a function that such a statement has in hand may be called later by whoever gets it from there
    in_hand = {read for statement in statements if statement.node in always for read in statement.read}
    live = {name} | read_later({name} | in_hand, statements)
    needed = []
    for statement in reversed(statements):
        if statement.node in always or (statement.bound | statement.changed) & live:
            needed.append(statement)
            called = set[str]() if statement.only_defines else read_later(statement.read, statements)
            live = (live - statement.certain) | statement.read | called
    return needed[::-1]


def read_later(names: Iterable[str], statements: list[Statement]) -> set[str]:
    """Return the names of the file that are read when the values of some names are called, directly or by others."""
    names_later, done, waiting = set[str](), set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            for statement in statements:
                if name in statement.bound or name in statement.changed:
                    names_later |= statement.read_later
                    waiting += statement.read | statement.read_later
    return names_later


def changed_in(node: ast.AST, *, inside: bool) -> set[str]:
    """Return the names of which a node sets or deletes a part, or calls a method that changes them or gives nothing.

    inside : whether functions in it count, which run later.
    """
    names = set[str]()
    for item in ast.walk(node) if inside else _here(node):
        match item:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                names |= _root(item)
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                names |= _root(method)
            case ast.Call(func=ast.Attribute(attr=called) as method) if called in _CHANGING:
                names |= _root(method)
            case ast.AugAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def called_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the name at the root of each call where a node runs, and the name that is called."""
    for item in _here(node):
        if isinstance(item, ast.Call):
            called = item.func.attr if isinstance(item.func, ast.Attribute) else ""
            yield from ((root, called or root) for root in _root(item.func))


def last_name(decorator: ast.expr) -> str:
    """Return the last name of a decorator, with or without arguments."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return str(getattr(called, "attr", getattr(called, "id", "")))


def _statement(node: ast.stmt) -> Statement:
    """Return a statement with its names, by Python's table of them, as if it were a module."""
    top = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    only_defines = _only_defines(node)
    symbols = top.get_symbols()
    read = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    later = set[str]()
    # whether a scope runs later: a function, and all that is in one
    inner = [(scope, _is_function(scope)) for scope in top.get_children()]
    while inner:
        scope, is_later = inner.pop()
        for symbol in scope.get_symbols():
            if symbol.is_global():
                # for Python's table `n += 1` assigns alone
                (later if is_later else read).add(symbol.get_name())
                if symbol.is_assigned():
                    bound.add(symbol.get_name())
        inner += [(child, is_later or _is_function(child)) for child in scope.get_children()]
    # what a statement defines and calls at once is read where it stands
    read |= set() if only_defines else later
    # only what is there can be deleted
    read |= {item.id for item in _here(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Del)}
    names = (bound, _certain(node), changed_in(node, inside=False), read, later)
    return Statement(node, only_defines, *map(frozenset, names))


def _is_function(scope: symtable.SymbolTable) -> bool:
    """Return whether a scope is a function that runs when it is called, not a comprehension, which runs at once."""
    return scope.get_type() == "function" and scope.get_name() not in ("listcomp", "setcomp", "dictcomp")


def _only_defines(node: ast.stmt) -> bool:
    """Return whether a statement does nothing but define names."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = node.args
            defaults = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            return _change_form(node.decorator_list) and all(map(_is_inert, defaults))
        case ast.ClassDef(bases=[], keywords=[]):
            return _change_form(node.decorator_list) and all(map(_only_defines, node.body))
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and _is_inert(value)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _is_inert(value)
        case ast.If(test=test, body=body, orelse=otherwise):
            return _is_inert(test) and all(map(_only_defines, [*body, *otherwise]))
    return False


def _change_form(decorators: list[ast.expr]) -> bool:
    """Return whether decorators only give what they decorate another form."""
    return all(last_name(decorator) in _FORM_ALONE for decorator in decorators)


def _is_inert(node: ast.expr) -> bool:
    """Return whether an expression changes nothing where it is evaluated: it calls, unpacks and looks up nothing."""
    return all(isinstance(item, _INERT) for item in _here(node) if isinstance(item, ast.expr))


def _is_fixed(statement: Statement) -> bool:
    """Return whether a statement gives the same whenever it runs: an import, or a number or text as a value."""
    node = statement.node
    return statement.is_import or (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and statement.only_defines
    )


def _are_modules(first: Statement, other: Statement) -> bool:
    """Return whether two statements define names as modules of the same names: `import a.b` and `import a.c`."""
    return all(
        isinstance(statement.node, ast.Import) and all(entry.asname is None for entry in statement.node.names)
        for statement in (first, other)
    )


def _certain(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines or deletes whatever happens, and whatever they were before."""
    match node:
        case ast.Import(names=names):
            # `import a.b` and `import a.c` both give `a`, and more than one of them alone
            return {entry.asname for entry in names if entry.asname}
        case ast.ImportFrom(names=names):
            return {entry.asname or entry.name for entry in names}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return set().union(*map(_names_in, targets))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return {name}
        case ast.If(body=body, orelse=otherwise):
            return _all_certain(body) & _all_certain(otherwise)
        case ast.Try(body=body, handlers=handlers):
            return _all_certain(body).intersection(*(_all_certain(handler.body) for handler in handlers))
    return set()


def _all_certain(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements one after the other define whatever happens."""
    return set().union(*map(_certain, body))


def _names_in(target: ast.expr) -> set[str]:
    """Return the names that a target of an assignment defines."""
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*map(_names_in, target.elts))
    return {target.id} if isinstance(target, ast.Name) else set()


def _here(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its parts but the bodies of functions and annotations, which do not run where they stand."""
    yield node
    for name, field in ast.iter_fields(node):
        later = name == "body" and isinstance(node, _FUNCTION | ast.Lambda)
        if not later and name not in ("annotation", "returns"):
            for item in field if isinstance(field, list) else [field]:
                if isinstance(item, ast.AST):
                    yield from _here(item)


def _root(node: ast.expr) -> set[str]:
    """Return the name with which an expression such as `a.b[0].c()` begins, if there is one."""
    while True:
        match node:
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Call(func=value):
                node = value
            case ast.Name(id=name):
                return {name}
            case _:
                return set()
