"""Docstrings as they are written in sweeplib, in reStructuredText; and the directive `public`, all names of a module.

A docstring has `name : meaning` lines with indented continuations, code in single backticks, indented examples, lists.
"""

import importlib
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from sweeplib import _HOMES
from sweeplib.engine.base.registry import Registry
from sweeplib.engine.code.exports import homes

LOGGER = logging.getLogger(__name__)
FIELD = re.compile(r"(\w[\w*]*(?: \([^)]*\))?(?:, \w[\w*]*(?: \([^)]*\))?)*) : (.*)")
"""A line that explains names, such as `running (n,) : false once ...`."""


def restructured(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a docstring in reStructuredText: definitions of names, literal examples, escaped text."""
    paragraphs = (list(group) for blank, group in groupby(lines, lambda line: not line.strip()) if not blank)
    for paragraph in paragraphs:
        if re.fullmatch("-+", paragraph[-1]):  # the title of a section
            continue
        if paragraph[0].startswith("    "):
            yield from ("::", "", *paragraph, "")
        elif len(paragraph) > 1 and re.fullmatch("-+", paragraph[1]):
            yield from definitions(paragraph[2:])
        else:
            yield from definitions(paragraph)


def definitions(paragraph: Iterable[str]) -> Iterator[str]:
    """Yield a paragraph, of which lines that explain names become a list of definitions."""
    defines = False
    for line in paragraph:
        field = FIELD.fullmatch(line)
        if field:
            yield from ("", f"``{field[1]}``", f"    {escaped(field[2])}")
        elif line.startswith("    ") and defines:
            yield f"    {escaped(line.strip())}"
        else:
            yield from [""] * defines
            yield escaped(line)
        defines = bool(field) or (defines and line.startswith("    "))
    yield ""


def escaped(line: str) -> str:
    """Return a line of text: code in double backticks, marks of the language without effect outside of it."""
    parts = re.split(r"`([^`]+)`", line)
    text = [re.sub(r"[*|]|_(?!\w)", r"\\\g<0>", part) if not i % 2 else part for i, part in enumerate(parts)]
    return "".join(f"``{part}``" if i % 2 else part for i, part in enumerate(text))


def process(_app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring that autodoc has read."""
    lines[:] = list(restructured(lines))


class Public(SphinxDirective):
    """All public names of a module, each with what documents it: `.. public:: sweeplib.plugins`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of all names."""
        [module] = self.arguments
        names = importlib.import_module(module).__all__
        homes_by_name = {"sweeplib": _HOMES, "sweeplib.plugins": homes()}.get(module, {})
        lines = [line for name in names for line in entry(module, name, homes_by_name.get(name, module))]
        return self.parse_text_to_nodes("\n".join([".. py:currentmodule:: None", "", *lines]))


def entry(module: str, name: str, home: str) -> Iterator[str]:
    """Yield the directive of a public name: autodoc of classes and functions, the names in a registry, or a value."""
    thing = getattr(importlib.import_module(module), name)
    if module == "sweeplib.plugins" and name in _HOMES:
        yield from (f".. py:data:: {module}.{name}", "", f"   :py:obj:`sweeplib.{name}`.", "")
    elif isinstance(thing, Registry):
        about = " ".join(ModuleAnalyzer.for_module(origin(home, name)).find_attr_docs().get(("", name), []))
        known = ", ".join(f"``{each}``" for each in thing)
        kind = escaped(about).strip() or f"The registry of each {thing.kind}."
        yield from (f".. py:data:: {module}.{name}", "", f"   {kind} Names: {known}.", "")
    elif isinstance(thing, type):
        yield from (f".. autoclass:: {module}.{name}", "   :members:", "")
    elif callable(thing):
        yield from (f".. autofunction:: {module}.{name}", "")
    else:
        value = ", ".join(sorted(thing)) if isinstance(thing, frozenset) else thing
        yield from (f".. py:data:: {module}.{name}", "", f"   ``{value}``", "")


def origin(home: str, name: str) -> str:
    """Return the module that defines a name, which its package imports."""
    text = ModuleAnalyzer.for_module(home).code
    imported = re.search(rf"^from (\S+) import [^\n]*\b{name}\b", text, re.MULTILINE)
    return origin(imported[1], name) if imported else home


def complete(_app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of a public name without an entry, which is an error of `make docs`."""
    known = env.domains["py"].objects  # type: ignore[attr-defined]
    for module in ("sweeplib", "sweeplib.networks.theory", "sweeplib.plugins"):
        for name in importlib.import_module(module).__all__:
            if f"{module}.{name}" not in known:
                LOGGER.warning("%s.%s has no entry in the reference", module, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive, and what reads docstrings."""
    app.add_directive("public", Public)
    app.connect("autodoc-process-docstring", process)
    app.connect("env-check-consistency", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
