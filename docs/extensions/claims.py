"""The claims of the five sources: the tables at the ends of the notebooks, and the page that is made of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
GALLERY = NOTEBOOKS.parent / "gallery.md"
SOURCES = (
    "dimensionless-odes",
    "escaping-mediocrity",
    "dimension-free-limits",
    "mean-field-view",
    "first-order-methods",
)
"""The notebooks that retell a source."""
MARK = "% claims\n"
"""What stands in the place of the tables on the page of the claims."""


class Claim(NamedTuple):
    """A row of the table of a notebook."""

    name: str
    printed: str
    right: str
    where: str
    result: str


def section(notebook: str) -> str:
    """Return the table of a notebook, as text."""
    return (NOTEBOOKS / f"{notebook}.md").read_text(encoding="utf-8").partition("\n## Claims\n")[2].strip()


def claims_of(notebook: str) -> list[Claim]:
    """Return the claims of the source that a notebook retells."""
    rows = [re.split(r"(?<!\\)\|", line.strip("|")) for line in section(notebook).splitlines()[2:]]
    return [Claim(*(cell.strip() for cell in row)) for row in rows]


def page() -> str:
    """Return the tables of all sources, each under a link to its notebook."""
    titles = [(NOTEBOOKS / f"{notebook}.md").read_text(encoding="utf-8") for notebook in SOURCES]
    heads = [re.search(r"^# (.*)$", text, re.MULTILINE)[1] for text in titles]  # type: ignore[index]
    parts = (
        f"## {head}\n\n[The notebook]({name}.md)\n\n{with_links(section(name), name)}"
        for head, name in zip(heads, SOURCES, strict=True)
    )
    return "\n\n".join(parts) + "\n"


def with_links(table: str, notebook: str) -> str:
    """Return a table in which "above" is a link to its notebook, and configs have one to their figures."""
    figures = figures_of_configs()

    def linked(match: re.Match[str]) -> str:
        anchor = figures.get(match[1])
        return f"{match[0]} ([figure](../gallery.md#{anchor}))" if anchor else match[0]

    table = re.sub(r"\| above(?=[; ])", f"| [above]({notebook}.md)", table)
    return re.sub(r"`config/(\w+)\.yaml`", linked, table)


def figures_of_configs() -> dict[str, str]:
    """Return the anchor of the section of the gallery that shows each config."""
    heads = re.findall(r"^## (.*`config/.*)$", GALLERY.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: anchor_of(head) for head in heads for name in re.findall(r"config/(\w+)\.yaml", head)}


def anchor_of(heading: str) -> str:
    """Return the anchor that MyST gives to a heading, as GitHub does."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def fill(app: Sphinx, docname: str, text: list[str]) -> None:
    """Put the tables on the page of the claims."""
    if docname == "notebooks/claims":
        for notebook in SOURCES:
            app.env.note_dependency(str(NOTEBOOKS / f"{notebook}.md"))
        text[0] = text[0].replace(MARK, page())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page when it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
