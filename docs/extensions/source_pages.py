"""Links from the pages to the code: a file that a page names, `networks/maths/overlaps.py`, leads to its source.

The name after a colon, as in "`networks/maths/overlaps.py`: `Overlaps.from_weights`", leads to its line; `name(...)`
of a public function to its documentation.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "sweeplib", ROOT)
FILE = re.compile(r"(?:[\w-]+/)*[\w-]+\.(?:py|yaml|smk|j2|sh)|Snakefile|Makefile")
NAMED = re.compile(r"([A-Za-z_][\w.]*)(?:\(.*\))?")
MODULES = ("sweeplib.", "sweeplib.networks.theory.", "")
"""Where a function lies that a page calls by its name alone."""
PARTS = ("analysis", "networks/observables", "networks/dynamics")
"""The rooms whose files the tables of the theory name without folder."""


def source(name: str) -> Path | None:
    """Return the file of this repository that a page names, or None."""
    if not FILE.fullmatch(name):
        return None
    if name.startswith("test_"):
        return next((ROOT / "tests").glob(f"*/{name}"), None)
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)


@cache
def tests() -> dict[str, Path]:
    """Return the file of each test, by its name; a name that several have is that of none."""
    files: dict[str, list[Path]] = {}
    for file in sorted((ROOT / "tests").glob("*/test_*.py")):
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            files.setdefault(name, []).append(file)
    return {name: those[0] for name, those in files.items() if len(those) == 1}


def page_name(file: Path) -> str:
    """Return the name of the page of a source file."""
    return f"source/{file.relative_to(ROOT).as_posix()}"


def lines_of(file: Path) -> dict[str, int]:
    """Return the lines of the functions, classes, methods and values that a file of Python defines, from 0."""
    if file.suffix != ".py":
        return {}
    lines: dict[str, int] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            lines[node.name] = node.lineno - 1
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            lines |= {f"{node.name}.{method.name}": method.lineno - 1 for method in methods}
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                lines[target.id] = node.lineno - 1
    return lines


class SourceLinks(SphinxPostTransform):
    """Makes links of the code in a page that names a file or a public function."""

    default_priority = 700
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Replace the literals of the page."""
        for parent in {literal.parent for literal in self.document.findall(nodes.literal)}:
            if not isinstance(parent, nodes.reference):
                for literal, address in list(self._addresses(parent.children)):
                    literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=address, internal=True))

    def _addresses(self, siblings: list[nodes.Node]) -> Iterator[tuple[nodes.literal, str]]:
        """Yield the literals of a paragraph or a cell that lead to a place, with its address."""
        file, names_follow = None, False
        for node in siblings:
            text = node.astext()
            if not isinstance(node, nodes.literal):
                names_follow = text.strip() == ":" if not names_follow else text.strip() in (",", "and")
            elif source(text):
                file, names_follow = source(text), False
                yield node, self._address(file)
            elif file and names_follow and text in lines_of(file):
                yield node, self._address(file, text)
            elif address := self._of_test(text) or self._of_part(text, node) or self._of_function(text):
                yield node, address

    def _of_test(self, text: str) -> str | None:
        return self._address(tests()[text], text) if text in tests() else None

    def _of_part(self, text: str, node: nodes.Node) -> str | None:
        """Return the address of an analysis, an observable or a dynamics that a table of theory or statistics names."""
        if self.env.docname not in ("theory", "statistics") or not isinstance(node.parent.parent, nodes.entry):
            return None
        file = next((file for folder in PARTS if (file := ROOT / "sweeplib" / folder / f"{text}.py").is_file()), None)
        return self._address(file) if file else None

    def _of_function(self, text: str) -> str | None:
        """Return the address of the documentation of a public function that is called, or named with its module."""
        name = NAMED.fullmatch(text)
        if name is None or not set("(.") & set(text):
            return None
        objects = self.env.domains["py"].objects  # type: ignore[attr-defined]
        target = next((objects[f"{module}{name[1]}"] for module in MODULES if f"{module}{name[1]}" in objects), None)
        return f"{self._relative(target.docname)}#{target.node_id}" if target else None

    def _address(self, file: Path, name: str = "") -> str:
        self.app.linked_sources.add(file)  # type: ignore[attr-defined]
        return self._relative(page_name(file)) + (f"#{name}" if name else "")

    def _relative(self, page: str) -> str:
        return self.app.builder.get_relative_uri(self.env.docname, page)


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page of each file that a page names."""
    for file in sorted(app.linked_sources):  # type: ignore[attr-defined]
        name, language = file.relative_to(ROOT).as_posix(), {".py": "python", ".yaml": "yaml"}.get(file.suffix, "text")
        lines = app.builder.highlighter.highlight_block(  # type: ignore[attr-defined]
            file.read_text(encoding="utf-8"), language
        ).splitlines()
        for defined, number in lines_of(file).items():
            before, pre, after = lines[number].partition("<pre>") if number == 0 else ("", "", lines[number])
            lines[number] = f'{before}{pre}<span id="{defined}"></span>{after}'
        body = f'<article class="source-page"><h1>{name}</h1>{chr(10).join(lines)}</article>'
        yield (
            page_name(file),
            {"title": name, "body": body, "theme_html_theme.sidebar_secondary.remove": True},
            "page.html",
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links and the pages that they lead to."""
    app.linked_sources = set()  # type: ignore[attr-defined]
    app.add_post_transform(SourceLinks)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
